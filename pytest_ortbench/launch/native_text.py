"""What ONNX Runtime and the libraries below it say, made readable. Pure text in, text out."""

from __future__ import annotations

import re

from pytest_ortbench.core.errors import in_quotes, says

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CODE = re.compile(r"\[ONNXRuntimeError\] : \d+ : ([A-Z_]+) : ?")
_ABSOLUTE_PLACE = re.compile(r"(/|[A-Za-z]:\\)[^\s:]+:\d+ ")
_SHORT_PLACE = re.compile(r"[\w.]+\.(cc|cpp|cxx|h|hpp|cu):\d+ (\w+) ")
_LOG_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \[[A-Z]:[^\]]*\] ?")
_SPACE = re.compile(r"\s+")
_LONGEST, _ENDING = 400, 150


def without_colour(text: str) -> str:
    """Remove terminal colours."""
    return _COLOUR.sub("", text)


def readable(text: str) -> str:
    """Return a native message as :func:`on_one_line` has it, cut to a length that can be shown."""
    return abridged(on_one_line(text))


def abridged(text: str) -> str:
    """Return ``text`` with its middle left out if it is long.

    The beginning says what was done, the end often why it failed; paths and types stand between.
    """
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _ENDING - 1]}…{text[-_ENDING:]}"


def on_one_line(text: str) -> str:
    """Return a native message on one line, without error codes, source places and signatures.

    ``[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/…/model.cc:256 onnxruntime::Model::Model(…)
    Unsupported model IR version: 99`` becomes ``Unsupported model IR version: 99``.
    """
    text = _LOG_PREFIX.sub("", without_colour(text).strip())
    text = _CODE.sub("", text)
    text = text.replace("[ERROR] ", "")
    text = _without_places(text)
    return _SPACE.sub(" ", text).strip()


#: What ONNX Runtime says where a node failed.
_OF_NODE = re.compile(
    r"Non-zero status code returned while running (\w+) node\. Name:'(.*?)' Status Message: (.*)"
)


def said_by(owner: str, text: str) -> str:
    """Return a native message in quotes, behind its owner and the node that it is about.

    Args:
        owner: Who says it.
        text: The message.
    """
    text = on_one_line(text)
    node = _OF_NODE.match(text)
    if node is None:
        return says(owner, abridged(text), _LONGEST)
    called = f"the node {node[2]!r} ({node[1]})" if node[2] else f"the node {node[1]}"
    return f"{owner} says of {called}: {in_quotes(abridged(node[3].rstrip('.')))}"


def error_code(text: str) -> str:
    """Return ONNX Runtime's code in a message (``NOT_IMPLEMENTED``), empty if there is none."""
    match = _CODE.search(text)
    return match.group(1) if match else ""


def error_lines(log: str) -> list[str]:
    """Return the lines of a native log that are errors or warnings, readable, the last first."""
    lines = []
    for line in reversed(without_colour(log).splitlines()):
        if re.search(r"\[[EFW]:|\[ERROR\]|^EP Error|[Ff]ailed|cannot open shared object", line):
            lines.append(readable(line))
    return lines


def _without_places(text: str) -> str:
    while True:
        match = _ABSOLUTE_PLACE.search(text)
        if match is None:
            break
        end = _signature_end(text, match.end())
        if end is None:
            break
        text = text[: match.start()] + text[end:]
    return _SHORT_PLACE.sub("", text)


def _signature_end(text: str, start: int) -> int | None:
    """Return where a C++ signature from ``start`` on ends, ``None`` if there is none."""
    depth, position, opened = 0, start, False
    while position < len(text):
        character = text[position]
        if character == "(":
            depth, opened = depth + 1, True
        elif character == ")":
            depth -= 1
            if depth == 0 and not text.startswith(("::", "("), position + 1):
                rest = position + 1
                return rest + 6 if text.startswith(" const", rest) else rest
        elif character == "\n" and not opened:
            return None
        position += 1
    return None
