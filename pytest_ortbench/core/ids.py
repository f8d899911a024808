"""How ids are spelt, and which of them a pattern is about."""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatchcase
from functools import lru_cache

#: Characters that break ``-k`` expressions, shells or ids, and what stands for them.
_ESCAPES = {ord(character): "_" for character in "=@|/\\[]() \t\n\r'\"<>&;$`*?!#%^~{}"}

#: Stands before the digest of a name that could not be spelt as it is; no other name holds it.
_MARK = ":"
_DIGITS = 8
#: A source, which is called as it is written: a function of a Python file. It can't be taken for a
#: name with its digest.
_FUNCTION = re.compile(rf"[^{_MARK}]+\.py{_MARK}(?![0-9a-f]{{{_DIGITS}}}\Z)\w+\Z", re.DOTALL)

#: ``model/precision/provider/b8/seq:128``, and ``+runtime`` where there are several; the model's
#: name may hold slashes.
_WHOLE = re.compile(
    r"(?P<name>.+)/(?P<precision>[^/]+)/(?P<provider>[^/]+)/b\d+(?:/[^/]+:[^/]*)*(?:\+[^/]*)?",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def escape_part(text: str) -> str:
    """Make ``text`` fit for one part of an id: characters that break ``-k`` become ``_``."""
    return text.translate(_ESCAPES)


@lru_cache(maxsize=4096)
def model_part(name: str) -> str:
    """Spell the name of a model in an id; two names never have the same spelling.

    Slashes stay. A name that holds something else which ids can't hold gets a digest of itself
    behind: ``nets/a b`` and ``nets/a_b`` are ``nets/a_b:89d6b213`` and ``nets/a_b``. A function of
    a Python file, ``net.py:build``, stays as it is.
    """
    text = "/".join(escape_part(part) for part in name.split("/"))
    if text == name and (_MARK not in name or _FUNCTION.match(name)):
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text}{_MARK}{digest[:_DIGITS]}"


def model_of(case_id: str) -> str:
    """Return what a case id begins with, its model; the whole text if it is no case id."""
    match = _WHOLE.fullmatch(case_id)
    return case_id if match is None else match["name"]


def is_whole_id(text: str) -> bool:
    """Whether a text is built as a whole case id is, from the model to the batch."""
    return _WHOLE.fullmatch(text) is not None


def id_fits(case_id: str, pattern: str) -> bool:
    """Whether a pattern is about a case, whatever other cases there are.

    Args:
        case_id: The case.
        pattern: Empty for all cases. A whole case id means the cases that begin with it. A glob is
            compared with the whole id; one without a slash may begin at any folder of the model's
            name, so that ``resnet*`` finds ``models/resnet50``. Other texts are a part of the id;
            one with a slash begins where a part of the id does.
    """
    if any(mark in pattern for mark in "*?["):
        return any(fnmatchcase(text, pattern) for text in _beginnings(case_id, pattern))
    if is_whole_id(pattern):
        return case_id.startswith(pattern)
    if "/" in pattern:
        return f"/{pattern.removeprefix('/')}" in f"/{case_id}"
    return pattern in case_id


def _beginnings(case_id: str, pattern: str) -> list[str]:
    """What a glob is compared with: the id, and for one without a slash the ends of it."""
    if "/" in pattern:
        return [case_id]
    folders = model_of(case_id).count("/")
    return [case_id.split("/", count)[-1] for count in range(folders + 1)]
