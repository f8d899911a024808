"""Run documents changed at random where it hurts: by the type of what stands there, seeded."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

#: Numbers that break sums, loops, divisions and 64 bits.
_INTEGERS = (0, -1, 1, 2, 2**31, 2**53, 2**63 - 1, 2**63, 10**25, 10**400, -(2**63))
_FLOATS = (0.0, -0.0, -1.5, 0.5, 1e-308, 1e308, -1e308, 37.5, 1.0000001, 2.0**63)
_TEXTS = (
    "",
    "x" * 5000,
    "x" * 1_200_000,
    "\x1b[31mred\x1b[0m\x07",
    "‮gnp.exe\u2066",
    "<script>alert(1)</script>",
    "nan",
    "None",
    "a\nb\r\n\tc",
    "../../../etc/passwd",
    "%s{0}{x}$(id)`id`",
    "ſ\u0000é💥",
    "[bold]x[/bold]",
    "$x^{",
    "\\frac{",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00+00:00",
)
#: What no JSON writer gives and some readers take.
_TOKENS = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400")

Path = tuple[Any, ...]


def mutated(document: dict[str, Any], seed: int, *, changes: int = 0) -> tuple[bytes, str]:
    """Return a changed copy of a document, and what was changed.

    Args:
        document: A plain run document.
        seed: The same one gives the same change.
        changes: How many values are changed; 0 for one to three.
    """
    draw = random.Random(seed)
    changed = copy.deepcopy(document)
    said = []
    for _ in range(changes or draw.choice((1, 1, 1, 2, 3))):
        # By the kind of field first: or nearly every change would hit a duration.
        places: dict[Path, list[Path]] = {}
        for path in _paths(changed):
            places.setdefault(tuple(step for step in path if isinstance(step, str)), []).append(
                path
            )
        path = draw.choice(places[draw.choice(list(places))])
        if path:
            said.append(_change(changed, path, draw))
    text = json.dumps(changed)
    for token in _TOKENS:
        text = text.replace(f'"\\u0000{token}"', token)
    if draw.random() < 0.03:
        cut = draw.randrange(len(text))
        text, said = text[:cut], [*said, f"cut after {cut}"]
    return text.encode(), "; ".join(said)


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))
    elif isinstance(value, list):
        # Of a long list its ends stand for all.
        for index in sorted({0, 1, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            yield from _paths(value[index], (*path, index))


def _change(document: Any, path: Path, draw: random.Random) -> str:
    *above, last = path
    holder = document
    for step in above:
        holder = holder[step]
    value = holder[last]
    name = "$" + "".join(f"[{s}]" if isinstance(s, int) else f".{s[:40]}" for s in path)
    if draw.random() < 0.08:
        del holder[last]
        return f"{name} removed"
    new = _of_other_type(draw) if draw.random() < 0.1 else _like(value, draw, holder)
    holder[last] = new
    shown = json.dumps(new, default=str)
    return f"{name} = {shown[:60]}"


def _like(value: Any, draw: random.Random, holder: Any) -> Any:
    """A bad value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((-value, value + 1, value * 1000, value // 2, *_INTEGERS))
    if isinstance(value, float):
        token = "\0" + draw.choice(_TOKENS)
        return draw.choice((-value, value * 1e6, round(value), token, *_FLOATS))
    if isinstance(value, str):
        others = [item for item in _siblings(holder) if isinstance(item, str)]
        return draw.choice((value + "x", value.upper(), value * 3, *_TEXTS, *others))
    if isinstance(value, list):
        return _list(value, draw)
    if isinstance(value, dict):
        return _object(value, draw)
    return _of_other_type(draw)


def _siblings(holder: Any) -> list[Any]:
    return list(holder.values()) if isinstance(holder, dict) else list(holder)


def _list(value: list[Any], draw: random.Random) -> list[Any]:
    longer = value * 2
    kinds: list[list[Any]] = [
        [], longer, value[:1], value[1:], value[::-1], [*value, None],
        (value * 3000)[:3000] if len(json.dumps(value)) < 500 else longer,
        draw.sample(value, len(value)),
        [0] * len(value), [-1] * max(1, len(value)),
    ]  # fmt: skip
    return draw.choice(kinds)


def _object(value: dict[str, Any], draw: random.Random) -> Any:
    keys = list(value)
    changed = dict(value)
    kind = draw.randrange(5)
    if kind == 0 and len(keys) > 1:
        one, other = draw.sample(keys, 2)
        changed[one], changed[other] = changed[other], changed[one]
    elif kind == 1:
        return {}
    elif kind == 2:
        changed[draw.choice(_TEXTS[1:])[:6000]] = draw.choice((1, "x", -1, None))
    elif kind == 3 and keys:
        changed = {key.upper() if key == keys[0] else key: item for key, item in value.items()}
    else:
        changed["deep"] = _deep(draw.choice((10, 500, 3000)))
    return changed


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(min(levels, 900)):
        value = [value]
    return value


def _of_other_type(draw: random.Random) -> Any:
    return draw.choice((None, True, 7, -7, 0.5, "text", "", [], {}, [1], {"a": 1}, _deep(50)))
