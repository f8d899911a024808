"""Secrets of the configuration, masked in all that is stored or shown of a run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: What stands in place of a secret.
MASK = "***"

#: Words that mean a secret at the end of any name (``PGPASSWORD``, ``clientSecret``).
_STRONG = (
    r"(?:passw(?:or)?d|passphrase|secret|credential|api_?-?key|access_?-?key|account_?-?key"
    r"|private_?-?key|(?:hf|gh|hub|git|api|auth|access|bearer|refresh|session|bot|id)_?-?token)s?"
)
#: The rest of a name; bounded, since anybody's document may hold one of a million characters.
_REST = r"[\w.-]{0,80}"
_NAME = (
    rf"(?:{_REST}{_STRONG}(?:[_.-]{_REST}|\d*)"
    rf"|(?:{_REST}[_.-])?(?:token|auth)(?:[_.-]{_REST})?|{_REST}[_.-](?:pass|pwd))"
)
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
#: An absolute path of POSIX or Windows, with two parts at least.
_PATH = re.compile(
    r"(?<![\w./…:-])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\:,;'\"=]+)+[/\\](?P<name>[^\s/\\:,;'\"=]+)"
)
_OPTION = re.compile(r"-+[\w-]+$")
#: ``https://user:TOKEN@host`` in a requirement, a command or a message of an installer.
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s'\"?#]+(?=@)")
#: ``--token=VALUE``, ``API_KEY="VALUE"``, ``?access_token=VALUE``, and signatures of addresses.
_NAMED_VALUE = re.compile(
    rf"(?P<name>(?<![\w.-]){_NAME}|(?<=[?&])(?:sig|signature|x-amz-[\w-]+))="
    r"""(?:"[^"]*"|'[^']*'|[^\s&,;'"]+)""",
    re.IGNORECASE,
)
#: ``"password": "VALUE"`` as JSON and Python have it.
_QUOTED_PAIR = re.compile(
    rf"""(?P<name>(?P<quote>["']){_NAME}(?P=quote)\s*:\s*)(?:"[^"]*"|'[^']*')""", re.IGNORECASE
)
#: ``Authorization: Bearer VALUE``, to the end of the line or of the quotes.
_HEADER = re.compile(
    r"(?P<name>(?<![\w-])(?:(?:proxy-)?authorization|(?:set-)?cookie|[\w-]{0,40}(?:api-key|token))"
    r"\s*:\s+)(?P<value>[^\r\n'\"]+)|(?P<scheme>(?<!\w)(?<!opt[:=])(?:bearer|basic)[ \t]+)"
    r"(?P<word>[\w.~+/=-]{8,})",
    re.IGNORECASE,
)
#: What stands behind an axis or a value of a model called ``n_token``: a size, a type, a sentence.
_SIZE = re.compile(r"[\d,.]{1,6}")
_TYPE = re.compile(r"(?:sparse_)?(?:tensor|seq|map|optional)\([\w(),]*\)")
_WORD = re.compile(r"(?!(?:bearer|basic)\b)[a-z]{1,12}[:,;.]?", re.IGNORECASE)
_TELLING = re.compile(rf"{_REST}{_STRONG}(?:[_.-]{_REST}|\d*)", re.IGNORECASE)
#: Secrets that are known by their looks: of GitHub, GitLab, Hugging Face, AWS, Google, Slack, npm,
#: PyPI, OpenAI and alike, web tokens, and private keys.
_BY_LOOKS = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|hf_[A-Za-z0-9]{30,}|A(?:KI|SI)A[A-Z0-9]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|sk-(?:proj|ant|live|test)-[\w-]{20,}"
    r"|sk-[A-Za-z0-9]{32,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
#: Without one of these no text has a secret in it that is found here.
_HINTS = re.compile(r"[=@]|[\"']\s*:|: |(?i:bearer|basic) |[a-zA-Z]{2}_|-----|[A-Za-z0-9_-]{20}")


def masked_text(text: str) -> str:
    """Return a text without what an address, a telling name or its looks mark as a secret."""
    if _HINTS.search(text) is None:
        return text
    text = _BY_LOOKS.sub(MASK, text)
    text = _IN_ADDRESS.sub(MASK, text)
    text = _HEADER.sub(_without_header, text)
    text = _QUOTED_PAIR.sub(lambda match: f'{match["name"]}"{MASK}"', text)
    return _NAMED_VALUE.sub(_without_value, text)


def _without_header(match: re.Match[str]) -> str:
    if match["scheme"]:
        prose = match["scheme"].rstrip() == "basic" and re.fullmatch("[a-z]+", match["word"])
        return match[0] if prose else f"{match['scheme']}{MASK}"
    name = match["name"].partition(":")[0].strip()
    first, _, rest = match["value"].partition(" ")
    if _TYPE.fullmatch(first):
        return match[0]
    told = _SIZE.fullmatch(first)
    prose = rest and "_" in name and _WORD.fullmatch(first)
    return match[0] if (told or prose) and _is_of_a_model(name) else f"{match['name']}{MASK}"


def _without_value(match: re.Match[str]) -> str:
    name, _, value = match[0].partition("=")
    plain = _SIZE.fullmatch(value) and _is_of_a_model(name)
    return match[0] if plain else f"{name}={MASK}"


def _is_of_a_model(name: str) -> bool:
    """Whether a name may as well be that of an axis, an input or an output."""
    telling = _TELLING.fullmatch(name) is not None
    return "token" in name.lower() and "-" not in name and not telling


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
