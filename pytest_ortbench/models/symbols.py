"""Names and arithmetic of symbolic dimensions: ``P+S``, ``past_length + 1``, ``floor(h/2)``.

A dimension of a model is a size, a symbol, an expression over symbols, or unset. Unset ones get a
name of their own here, so that each can be set and printed like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from pytest_ortbench.core.model import TensorInfo

_TOKEN = re.compile(r"\s*(?:(\d+)|`([^`]+)`|([^\W\d][\w.:\[\]$]*)|(//|[-+*/(),]))")
_PLAIN = re.compile(r"[^\W\d][\w.:\[\]$]*\Z")
_FUNCTIONS = ("floor", "ceil", "ceiling", "min", "max")

#: A longer text is a name, since what reads an expression goes down once for each nested part.
_LONGEST = 400
#: No axis is longer; one that was computed may have any number of digits.
_LARGEST = 2**63 - 1


class UnknownSymbolError(KeyError):
    """An expression names a symbol that has no size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed dimension.

    Attributes:
        operator: ``number``, ``name``, a function, or one of ``+ - * / //``.
        parts: Operands.
        name: Of a ``name``.
        number: Of a ``number``.
    """

    operator: str
    parts: tuple[Expression, ...] = ()
    name: str = ""
    number: int = 0

    def names(self) -> tuple[str, ...]:
        """Symbols in it, each once, in order."""
        found: dict[str, None] = {self.name: None} if self.operator == "name" else {}
        for part in self.parts:
            found.update(dict.fromkeys(part.names()))
        return tuple(found)

    def operators(self) -> frozenset[str]:
        """Operators in it."""
        found = frozenset({self.operator})
        return found.union(*(part.operators() for part in self.parts))


def parse(text: str) -> Expression | None:
    """Parse a dimension; ``None`` where it is no arithmetic at all (an opaque name)."""
    if len(text) > _LONGEST:
        return None
    tokens = list(_tokens(text))
    if not tokens or any(kind == "bad" for kind, _ in tokens):
        return None
    try:
        expression, rest = _sum(tokens)
    except (IndexError, ValueError, RecursionError):
        return None
    return expression if not rest else None


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """Return the size that ``text`` stands for.

    Raises:
        UnknownSymbolError: if it names a symbol that ``sizes`` lacks.
        ArithmeticError: if it divides by zero, does not give a whole number, or one that is larger
            than any axis; it says which.
    """
    if text in sizes:
        return sizes[text]
    expression = parse(text)
    if expression is None:
        raise UnknownSymbolError(text)
    try:
        value = _value(expression, sizes)
    except ZeroDivisionError:
        raise ArithmeticError("it divides by zero") from None
    if value.denominator != 1:
        raise ArithmeticError(f"it is {value}, not a whole number")
    if abs(value) > _LARGEST:
        raise ArithmeticError("it is larger than 2^63, the longest that an axis may be")
    return int(value)


def quote(symbol: str | int) -> str:
    """Write a symbol so that it can stand inside an expression."""
    text = str(symbol)
    if isinstance(symbol, int) or _PLAIN.match(text):
        return text
    expression = parse(text)
    return f"({text})" if expression is not None else f"`{text}`"


def named_shapes(inputs: Sequence[TensorInfo]) -> tuple[tuple[int | str, ...] | None, ...]:
    """Return the shapes with a generated name, ``<input>_dim_<axis>``, for every unset axis."""
    taken = {size for info in inputs for size in info.shape or () if isinstance(size, str)}
    shapes: list[tuple[int | str, ...] | None] = []
    for info in inputs:
        if info.shape is None:
            shapes.append(None)
            continue
        shape: list[int | str] = []
        for axis, size in enumerate(info.shape):
            if size is None:
                plain = re.sub(r"[^\w.]", "_", info.name)
                size = _free_name(f"{plain}_dim_{axis}", taken)
                taken.add(size)
            shape.append(size)
        shapes.append(tuple(shape))
    return tuple(shapes)


def free_symbols(shapes: Sequence[tuple[int | str, ...] | None]) -> tuple[str, ...]:
    """Symbols that need a size, each once, in order; expressions count as what they are made of."""
    texts = dict.fromkeys(size for shape in shapes for size in shape or () if isinstance(size, str))
    plain = {text for text in texts if _is_plain(text)}
    found: dict[str, None] = {}
    for text in texts:
        expression = derived(text, plain)
        found.update(dict.fromkeys((text,) if expression is None else expression.names()))
    return tuple(found)


def derived(text: str, known: Set[str]) -> Expression | None:
    """Return ``text`` as an expression over other symbols, ``None`` if it is a symbol itself.

    ``seq-len`` is a name unless ``seq`` or ``len`` is another symbol of the model; the other
    operators never stand in plain names.
    """
    if _is_plain(text):
        return None
    expression = parse(text)
    if expression is None:
        return None
    names = expression.names()
    if not names or known & set(names):
        return expression
    arithmetic = expression.operators() & {"+", "*", "//", *_FUNCTIONS}
    return expression if arithmetic else None


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.match(text))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            yield "bad", text[position:]
            return
        number, quoted, name, operator = match.groups()
        if number is not None:
            yield "number", number
        elif operator is not None:
            yield "operator", operator
        else:
            yield "name", name if quoted is None else quoted
        position = match.end()


_Tokens = Sequence[tuple[str, str]]


def _sum(tokens: _Tokens) -> tuple[Expression, _Tokens]:
    left, tokens = _product(tokens)
    while tokens and tokens[0] in (("operator", "+"), ("operator", "-")):
        right, rest = _product(tokens[1:])
        left, tokens = Expression(operator=tokens[0][1], parts=(left, right)), rest
    return left, tokens


def _product(tokens: _Tokens) -> tuple[Expression, _Tokens]:
    left, tokens = _factor(tokens)
    while tokens and tokens[0][0] == "operator" and tokens[0][1] in ("*", "/", "//"):
        right, rest = _factor(tokens[1:])
        left, tokens = Expression(operator=tokens[0][1], parts=(left, right)), rest
    return left, tokens


def _factor(tokens: _Tokens) -> tuple[Expression, _Tokens]:
    (kind, text), rest = tokens[0], tokens[1:]
    if kind == "number":
        return Expression(operator="number", number=int(text)), rest
    if kind == "name":
        if text.lower() in _FUNCTIONS and rest and rest[0] == ("operator", "("):
            return _call(text.lower(), rest[1:])
        return Expression(operator="name", name=text), rest
    if text == "-":
        operand, rest = _factor(rest)
        zero = Expression(operator="number")
        return Expression(operator="-", parts=(zero, operand)), rest
    if text != "(":
        raise ValueError(text)
    inner, rest = _sum(rest)
    if rest[0] != ("operator", ")"):
        raise ValueError(text)
    return inner, rest[1:]


def _call(function: str, tokens: _Tokens) -> tuple[Expression, _Tokens]:
    arguments: list[Expression] = []
    while True:
        argument, tokens = _sum(tokens)
        arguments.append(argument)
        if tokens[0] == ("operator", ")"):
            return Expression(operator=function, parts=tuple(arguments)), tokens[1:]
        if tokens[0] != ("operator", ","):
            raise ValueError(function)
        tokens = tokens[1:]


def _value(expression: Expression, sizes: Mapping[str, int]) -> Fraction:
    if expression.operator == "number":
        return Fraction(expression.number)
    if expression.operator == "name":
        if expression.name not in sizes:
            raise UnknownSymbolError(expression.name)
        return Fraction(sizes[expression.name])
    values = [_value(part, sizes) for part in expression.parts]
    match expression.operator:
        case "+":
            return values[0] + values[1]
        case "-":
            return values[0] - values[1]
        case "*":
            return values[0] * values[1]
        case "/":
            return values[0] / values[1]
        case "//":
            return Fraction(floor(values[0] / values[1]))
        case "floor":
            return Fraction(floor(values[0]))
        case "ceil" | "ceiling":
            return Fraction(ceil(values[0]))
        case "min":
            return min(values)
        case _:
            return max(values)
