"""Reading lists as people type them: commas, axes of integers, sizes of dimensions, settings.

A comma separates only outside brackets and in front of something that can start an item, so that
``openvino:HETERO:GPU,CPU``, ``onnxruntime-gpu[cuda,cudnn]`` and ``onnxruntime>=1.2,<1.3`` survive
without any quoting.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

from pytest_ortbench.core.errors import UsageError, first_of_several, near_and_known

_OPENING = "([{"
_CLOSING = ")]}"
#: Longer numbers are typing errors; ``int()`` of thousands of digits would be one that hangs.
_LONGEST_NUMBER = 18
#: Sizes of one range.
_MOST_SIZES = 10_000
_LIKE_A_SIZE = re.compile(r"\s*[-+]?\d")
_LIKE_A_PAIR = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\d+)")
_SETTING = re.compile(r"[A-Za-z_][\w.\-]*\s*=")


def split_list(
    texts: str | Iterable[str],
    *,
    place: str,
    starts_item: Callable[[str], bool] | None = None,
) -> list[str]:
    """Split comma-separated text into items.

    Args:
        texts: One text, or all texts of a repeated option.
        place: Where they were written, for messages.
        starts_item: Given everything behind a comma, says whether an item may start there; a comma
            where none can belongs to the item before it. Without it, every comma outside brackets
            separates.

    Returns:
        The items in order, stripped; never an empty one.

    Raises:
        UsageError: for an empty item or brackets that do not match.
    """
    if isinstance(texts, str):
        texts = (texts,)
    items: list[str] = []
    for text in texts:
        items += _split_one(text, place, starts_item)
    return items


def _split_one(text: str, place: str, starts_item: Callable[[str], bool] | None) -> list[str]:
    cuts: list[int] = []
    open_brackets: list[str] = []
    for index, character in enumerate(text):
        if character in _OPENING:
            open_brackets.append(_CLOSING[_OPENING.index(character)])
        elif character in _CLOSING:
            expected = open_brackets.pop() if open_brackets else ""
            if expected != character:
                raise _unbalanced(text, character, expected, place)
        elif character == "," and not open_brackets:
            rest = text[index + 1 :].lstrip()
            # A comma at the end or before another one is an empty item, whatever may start one.
            if starts_item is None or not rest or rest[0] == "," or starts_item(rest):
                cuts.append(index)
    if open_brackets:
        raise _unbalanced(text, "", open_brackets[-1], place)
    edges = [-1, *cuts, len(text)]
    items = [text[a + 1 : b].strip() for a, b in itertools.pairwise(edges)]
    if not all(item and item[0] != "," for item in items):
        if not text.strip():
            raise UsageError(
                "the value is empty", place=place, hint="Write a value, or leave the option out"
            )
        raise UsageError(
            f"{text!r} has a comma too many",
            place=place,
            hint="Remove it" if any(items) else "Write a value, or leave the option out",
        )
    return items


def _unbalanced(text: str, found: str, expected: str, place: str) -> UsageError:
    """Return the error of a bracket that is missing, or of another kind than the one it closes.

    Args:
        text: What was written.
        found: The closing bracket that stands there; empty at the end of the text.
        expected: The closing bracket that should; empty where none is open.
        place: Where, for messages.
    """
    opened = _OPENING[_CLOSING.index(expected)] if expected else ""
    if not expected:
        what, step = f"the bracket {found!r} closes nothing", "Remove it"
    elif not found:
        what, step = f"the bracket {opened!r} is not closed", f"Write the missing {expected!r}"
    else:
        what = f"the bracket {opened!r} is closed by {found!r}"
        step = f"Write {expected!r} in place of {found!r}"
    return UsageError(f"in {text!r} {what}", place=place, hint=step)


#: What native code counts with has 31 bits.
MOST = 2**31 - 1
SESSION_EXAMPLE = "intra_op_num_threads=2"


def parse_int_list(
    texts: str | Iterable[str],
    *,
    place: str,
    least: int = 1,
    most: int = MOST,
    example: str = "1,8",
) -> tuple[int, ...]:
    """Read whole numbers: ``1,8`` or ``("1", "8")`` → ``(1, 8)``; a repeated value counts once.

    Raises:
        UsageError: for anything that is not a whole number of at least ``least``.
    """
    items = split_list(texts, place=place)
    numbers = (
        parse_int(item, place=place, least=least, most=most, example=example) for item in items
    )
    return tuple(dict.fromkeys(numbers))


def parse_int(
    text: str, *, place: str, least: int = 1, most: int = MOST, example: str = "1"
) -> int:
    """Read one whole number of at least ``least`` and at most ``most``.

    Raises:
        UsageError: if it is not one.
    """
    stripped = text.strip()
    digits = stripped.removeprefix("+")
    if stripped.startswith("-") and _is_digits(stripped[1:]):
        raise UsageError(
            f"{stripped} is too small. The smallest allowed value is {least}",
            place=place,
            hint=f"Write e.g. {example}",
        )
    if not _is_digits(digits):
        raise UsageError(
            f"{_shorten(stripped)!r} is not a whole number",
            place=place,
            hint=f"Write e.g. {example}",
        )
    number = int(digits)
    if number > most:
        raise UsageError(
            f"{number} is too large. The largest allowed value is {most}",
            place=place,
            hint=f"Write e.g. {example}",
        )
    if number < least:
        raise UsageError(
            f"{number} is too small. The smallest allowed value is {least}",
            place=place,
            hint=f"Write e.g. {example}",
        )
    return number


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def parse_choices(
    texts: str | Iterable[str],
    known: Sequence[str],
    *,
    place: str,
    what: str = "value",
    several: bool = True,
) -> tuple[str, ...]:
    """Read words out of a fixed set; a repeated one counts once.

    Args:
        texts: What was written.
        known: The words.
        place: Where, for messages.
        what: What a word is, likewise.
        several: Whether more than one may be written, for advice.

    Raises:
        UsageError: for an unknown word, with the nearest known one.
    """
    items = split_list(texts, place=place)
    for item in items:
        if item not in known:
            apart = several and bool(first_of_several(item, known))
            listed = ",".join(item.replace(";", " ").split())
            raise UsageError(
                f"{item!r} is not a known {what}",
                place=place,
                hint=f"Write commas between the values: {listed}"
                if apart
                else near_and_known(item, known),
            )
    return tuple(dict.fromkeys(items))


def parse_dims(
    texts: str | Iterable[str], *, place: str, ranges: bool = False
) -> dict[str, tuple[int, ...]]:
    """Read sizes of symbolic dimensions: ``seq:128:512,hw:640`` → seq 128 and 512, hw 640.

    A name may hold spaces and operators (``past_sequence_length + 1``). Zero is allowed here: an
    empty past is a workload of its own. A name that stands twice collects the sizes of both.

    Args:
        texts: What was written.
        place: Where, for messages.
        ranges: Whether ``1-300`` stands for all sizes from 1 to 300.

    Raises:
        UsageError: for an item without a name, without a size, or with a size that is no number.
    """
    dims: dict[str, tuple[int, ...]] = {}
    items = split_list(texts, place=place)
    if len(items) > 1 and all(map(_is_digits, items)):
        first, last = items[-2:]
        raise UsageError(
            f"{','.join(items)!r} has no names of dimensions",
            place=place,
            hint="Write the name and the size of each dimension that the model leaves open, e.g. "
            f"height:{first},width:{last}",
        )
    for item in items:
        name, written = _name_and_sizes(_spread(item, place) if ranges else item, place)
        example = f"{name}:128, or {name}:1-128 for a range" if ranges else f"{name}:128"
        sizes = [
            parse_int(size, place=f"{place}, dimension {name!r}", least=0, example=example)
            for size in written
        ]
        dims[name] = tuple(dict.fromkeys((*dims.get(name, ()), *sizes)))
    return dims


def _spread(item: str, place: str) -> str:
    """Write a range out: ``seq:1-3`` → ``seq:1:2:3``.

    Raises:
        UsageError: for one that ends before it starts, or has more than 10,000 sizes.
    """

    def sizes(match: re.Match[str]) -> str:
        first, last = int(match[1]), int(match[2])
        if last < first:
            raise UsageError(
                f"the range {match[0][1:]} in {item!r} ends before it starts",
                place=place,
                hint=f"Write {item[: match.start()]}:{last}-{first}{item[match.end() :]}",
            )
        if last - first >= _MOST_SIZES:
            raise UsageError(
                f"the range {match[0][1:]} in {item!r} has {last - first + 1} sizes, but at most "
                f"{_MOST_SIZES} are allowed",
                place=place,
                hint="Write a shorter range, or single sizes, e.g. "
                f"{item[: match.start()]}:128:512",
            )
        return ":" + ":".join(str(size) for size in range(first, last + 1))

    return re.sub(r":(\d{1,9})-(\d{1,9})(?=:|$)", sizes, item)


def _name_and_sizes(item: str, place: str) -> tuple[str, list[str]]:
    """Split at the first colon behind which only sizes follow: exporters write ``onnx::Mul_3``."""
    parts = item.split(":")
    first = len(parts)
    while first > 1 and _LIKE_A_SIZE.match(parts[first - 1]):
        first -= 1
    name = ":".join(parts[:first]).strip()
    if first == len(parts) or not name or ":" in name.replace("::", ""):
        if _is_digits(item):
            raise UsageError(
                f"{item!r} has no name of a dimension",
                place=place,
                hint=f"Write NAME:{item}, where NAME is the name of the dimension in the model",
            )
        written = re.match(r"\w+", item)
        example = written[0] if written is not None and not written[0].isdigit() else "seq"
        pair = _LIKE_A_PAIR.fullmatch(item)
        raise UsageError(
            f"{item!r} is not a dimension with its sizes",
            place=place,
            hint=f"Write {pair[1]}:{pair[2]}"
            if pair is not None
            else f"Write e.g. {example}:128, or {example}:128:512 for several sizes",
        )
    return name, parts[first:]


#: What is left of sizes of inputs that commas stand between.
_SIZES = re.compile(r"\d+(x\d+)*(:\w+)?")


def parse_exporter(texts: str | Iterable[str], *, place: str) -> dict[str, str]:
    """Read settings of exporters; a word alone is the name of one.

    Raises:
        UsageError: for a key with two values, and for sizes that commas stand between.
    """
    texts = [texts] if isinstance(texts, str) else texts
    items = [item.strip() for text in texts for item in text.split(",")]
    sizes = next(filter(_SIZES.fullmatch, items), "")
    if sizes:
        raise UsageError(
            f"{sizes!r} is not the name of an exporter",
            place=place,
            hint="In inputs, write x between the numbers of a size, and ; between two inputs, e.g. "
            "--ort-exporter='inputs=1x3x224x224;1x16:int64'"
            if any(item.partition("=")[0].strip() == "inputs" for item in items)
            else f"For opset {sizes}, write opset={sizes}"
            if _is_digits(sizes)
            else f"For inputs of this size, write inputs={sizes}",
        )
    settings = [item if "=" in item else f"exporter={item}" for item in items if item]
    return parse_settings(settings, place=place, example="opset=17")


def parse_settings(texts: str | Iterable[str], *, place: str, example: str) -> dict[str, str]:
    """Read ``KEY=VALUE`` pairs; a comma inside a value survives unless another ``KEY=`` follows.

    Args:
        texts: What was written.
        place: Where.
        example: A pair, for advice.

    Raises:
        UsageError: for an item without ``=``, and for a key with two values.
    """
    settings: dict[str, str] = {}
    for item in split_list(texts, place=place, starts_item=starts_setting):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise UsageError(
                f"{item!r} has no name before '='" if equals else f"{item!r} has no '='",
                place=place,
                hint=f"Write {item}=VALUE, as in {example}"
                if starts_setting(f"{item}=")
                else f"Write a name and a value, e.g. {example}",
            )
        if settings.get(key, value) != value:
            raise UsageError(
                f"{key!r} has two values, {settings[key]!r} and {value!r}",
                place=place,
                hint="Keep one of them",
            )
        settings[key] = value
    return settings


def starts_setting(rest: str) -> bool:
    """Whether ``rest`` starts with ``KEY=``."""
    return _SETTING.match(rest) is not None


def _shorten(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
