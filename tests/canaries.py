"""Run documents in which every text is a path that tells where it stood, made from the types.

A field that is added to the document is found by itself: nothing here names one.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.run import Run
from pytest_ortbench.schema.document import decode_run, encode_run

#: The way to a value: keys of objects, positions in arrays; ``KEY`` for an object's own first key.
Place = tuple[str | int, ...]
KEY = "<key>"
#: A folder that no test makes, so that whatever was done with it shows.
CANARY = "CANARY"


def document_of(run: Run) -> dict[str, Any]:
    """Return the run as plain values."""
    plain: dict[str, Any] = json.loads(encode_run(run))
    return plain


def decoded(document: dict[str, Any]) -> Run | None:
    """Return the run that a document holds; ``None`` where it is refused."""
    try:
        return decode_run(json.dumps(document).encode(), "run.json")
    except DocumentError:
        return None


@dataclasses.dataclass(frozen=True)
class Grown:
    """A document in which nothing is empty, as far as it stays valid so.

    Attributes:
        document: The document.
        places: Where texts stand in it.
        fillings: What was put where nothing was, with as little as possible in it.
    """

    document: dict[str, Any]
    places: list[Place] = dataclasses.field(default_factory=list)
    fillings: dict[Place, Any] = dataclasses.field(default_factory=dict)


def grown(document: dict[str, Any]) -> Grown:
    """Fill what is empty in a document."""
    made = Grown(copy.deepcopy(document))
    _grow(made, Run, ())
    return made


def planted_alone(document: dict[str, Any], made: Grown, place: Place) -> dict[str, Any]:
    """Return the document with a canary at one place, and nothing else filled but the way there."""
    document = copy.deepcopy(document)
    for end in range(1, len(place) + 1):
        if place[:end] in made.fillings:
            _put(document, place[:end], copy.deepcopy(made.fillings[place[:end]]))
    return planted(document, place)


def planted(document: dict[str, Any], *places: Place, start: str = "/") -> dict[str, Any]:
    """Return the document with a canary at each place, numbered from 0.

    Args:
        document: What is changed.
        places: Where.
        start: How each path begins: from the root, or out of the folder that it is put behind.
    """
    document = copy.deepcopy(document)
    for number, place in enumerate(places):
        _put(document, place, f"{start}{CANARY}/{number}/it")
    return document


def full_of_canaries(
    document: dict[str, Any], *, start: str = "/", keep: Callable[[Place], bool] = lambda _: False
) -> dict[str, Any]:
    """Return the document with a canary wherever a document may hold one.

    Args:
        document: What is changed.
        start: As of :func:`planted`.
        keep: Says which places stay what they are.
    """
    made = grown(document)
    accepted: list[Place] = []
    # Keys last, and inner ones first: they rename what other places go through.
    for place in sorted(made.places, key=lambda place: (place[-1] == KEY, -len(place))):
        if not keep(place) and decoded(planted(made.document, *accepted, place)) is not None:
            accepted.append(place)
    assert len(accepted) > 50
    return planted(made.document, *accepted, start=start)


def answer_of(hint: Any) -> Any:
    """Return a plain value of a type with a canary for every text in it."""
    hint = _without_none(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return {field.name: answer_of(hints[field.name]) for field in dataclasses.fields(hint)}
    if origin is tuple:
        return [answer_of(each) for each in _items(arguments)]
    if origin is dict:
        return {f"/{CANARY}/key/it": answer_of(arguments[1])}
    if _is_union(hint):
        return answer_of(typing.get_args(hint)[0])
    return {bool: False, int: 1, float: 1.0}.get(hint, f"/{CANARY}/0/it")


def _grow(made: Grown, hint: Any, place: Place) -> None:
    value = _at(made.document, place)
    hint = _without_none(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        if value is None and not _fill(made, place, _minimal(hint)):
            return
        hints = typing.get_type_hints(hint)
        for field in dataclasses.fields(hint):
            _grow(made, hints[field.name], (*place, field.name))
    elif origin is tuple:
        if not value and not _fill(made, place, [_minimal(each) for each in _items(arguments)]):
            return
        for index, item in enumerate(_items(arguments)):
            _grow(made, item, (*place, index))
    elif origin is dict:
        if not value and not _fill(made, place, {"key": _minimal(arguments[1])}):
            return
        made.places.append((*place, KEY))
        _grow(made, arguments[1], (*place, next(iter(_at(made.document, place)))))
    elif _is_text(hint) and (value is None or isinstance(value, str)):
        made.places.append(place)


def _is_text(hint: Any) -> bool:
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    return any(member is str or typing.get_origin(member) is typing.Literal for member in members)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _without_none(hint: Any) -> Any:
    if not _is_union(hint):
        return hint
    members = tuple(each for each in typing.get_args(hint) if each is not type(None))
    return members[0] if len(members) == 1 else typing.Union[members]  # noqa: UP007  # of a tuple


def _items(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments[:1] if arguments[1:] == (Ellipsis,) else arguments


def _minimal(hint: Any) -> Any:
    """A value of a type with as little as possible in it."""
    hint = _without_none(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return {
            field.name: _minimal(hints[field.name])
            for field in dataclasses.fields(hint)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
    if origin is typing.Literal:
        return arguments[0]
    if origin is tuple:
        return [] if arguments[1:] == (Ellipsis,) else [_minimal(each) for each in arguments]
    if _is_union(hint):
        return _minimal(typing.get_args(hint)[0])
    return {dict: {}, bool: False, int: 1, float: 1.0}.get(origin or hint, "x")


def _fill(made: Grown, place: Place, value: Any) -> bool:
    """Put a value there if the document stays valid."""
    holder = _at(made.document, place[:-1])
    before = copy.deepcopy(holder)
    _put(made.document, place, value)
    if decoded(made.document) is None:
        holder.clear()
        holder.update(before) if isinstance(holder, dict) else holder.extend(before)
        return False
    made.fillings[place] = copy.deepcopy(value)
    return True


def _at(document: Any, place: Place) -> Any:
    for part in place:
        document = document.get(part) if isinstance(document, dict) else document[part]
    return document


def _put(document: Any, place: Place, value: Any) -> None:
    holder = _at(document, place[:-1])
    if place[-1] == KEY:
        first = next(iter(holder))
        held = list(holder.items())
        holder.clear()
        holder.update({value if key == first else key: item for key, item in held})
    else:
        holder[place[-1]] = value


# -- what a process does ---------------------------------------------------------------------------

#: Events of Python that start, load, read or write something (see its table of audit events).
_EVENTS = (
    "open", "exec", "import", "subprocess.", "os.", "ctypes.", "shutil.", "socket.", "urllib.",
    "webbrowser.", "pty.", "tempfile.", "glob.", "pathlib.",
)  # fmt: skip

_heard: list[list[str]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if not _heard or not event.startswith(_EVENTS):
        return
    # Of what is executed the name of the file tells; the code itself holds this very word.
    shown = [getattr(each, "co_filename", each) for each in arguments]
    text = repr(shown)
    # As part of a name, with what makes a path replaced, it leads nowhere.
    if f"/{CANARY}/" in text:
        _heard[-1].append(f"{event} {text[:300]}")


sys.addaudithook(_hear)


@contextmanager
def deeds() -> Iterator[list[str]]:
    """Give what this process does meanwhile with anything that holds a canary."""
    found: list[str] = []
    _heard.append(found)
    try:
        yield found
    finally:
        _heard.remove(found)
