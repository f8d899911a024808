"""Secrets of the configuration, masked in all that is stored or shown of a run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: What stands in place of a secret.
MASK = "***"

_WORD = (
    r"(?:token|secret|password|passwd|passphrase|api_?-?key|access_?-?key|private_?-?key"
    r"|auth|credentials?)"
)
_NAME = rf"(?:[\w.-]*[_.-])?{_WORD}(?:[_.-][\w.-]*)?"
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
#: An absolute path of POSIX or Windows, with two parts at least.
_PATH = re.compile(
    r"(?<![\w./…:-])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\:,;'\"=]+)+[/\\](?P<name>[^\s/\\:,;'\"=]+)"
)
_OPTION = re.compile(r"-+[\w-]+$")
#: ``https://user:TOKEN@host`` in a requirement, a command or a message of an installer.
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")
#: ``--token=VALUE``, ``API_KEY=VALUE``, ``?access_token=VALUE``.
_NAMED_VALUE = re.compile(rf"(?P<name>(?<![\w.-]){_NAME})=(?P<value>[^\s&,;'\"]+)", re.IGNORECASE)


def masked_text(text: str) -> str:
    """Return a text without what an address or a telling name marks as a secret."""
    if "=" not in text and "@" not in text:
        return text
    text = _IN_ADDRESS.sub(MASK, text)
    return _NAMED_VALUE.sub(lambda match: f"{match['name']}={MASK}", text)


def masked(value: T) -> T:
    """Return a value with every secret in it masked, however deep it stands.

    Args:
        value: A dataclass, a mapping, a sequence, a text, or anything without a text in it.
    """
    return _masked(value, masked_text)  # type: ignore[no-any-return]  # the same type comes out


def without_places(value: T, host: str) -> T:
    """Return a value without secrets, and without its host, users and absolute paths.

    Of a path its last part stays.

    Args:
        value: As of :func:`masked`.
        host: The name of the host.
    """
    names = re.compile(rf"(?<![A-Za-z0-9]){re.escape(host)}(?![A-Za-z0-9])") if host else None

    def text_without(text: str) -> str:
        text = _PATH.sub(lambda match: f"…/{match['name']}", masked_text(text))
        return text if names is None else names.sub("host", text)

    return _masked(value, text_without)  # type: ignore[no-any-return]  # the same type comes out


def _masked(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for entry in dataclasses.fields(value):
            before = getattr(value, entry.name)
            after = _masked(before, change)
            if after is not before and entry.init:
                changed[entry.name] = after
        return dataclasses.replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return _masked_mapping(value, change)
    if isinstance(value, (tuple, list)) and value and not isinstance(value[0], (int, float)):
        return _masked_sequence(value, change)
    return value


def _is_telling(name: object) -> bool:
    return isinstance(name, str) and _SECRET_NAME.fullmatch(name) is not None


def _masked_mapping(value: Mapping[Any, Any], change: Callable[[str], str]) -> Mapping[Any, Any]:
    after = {
        name: MASK
        if isinstance(name, str)
        and isinstance(entry, str)
        and entry
        and _SECRET_NAME.fullmatch(name)
        else _masked(entry, change)
        for name, entry in value.items()
    }
    return value if all(after[name] is value[name] for name in value) else after


def _masked_sequence(value: tuple[Any, ...] | list[Any], change: Callable[[str], str]) -> Any:
    """The entries masked; what follows ``--token`` in a command is its value."""
    after = [_masked(entry, change) for entry in value]
    for index, entry in enumerate(value[:-1]):
        option = isinstance(entry, str) and entry.startswith("-") and "=" not in entry
        if (
            option
            and isinstance(value[index + 1], str)
            and _SECRET_NAME.fullmatch(entry.lstrip("-"))
        ):
            after[index + 1] = MASK
    if all(masked is other for masked, other in zip(after, value, strict=True)):
        return value
    return tuple(after) if isinstance(value, tuple) else after
