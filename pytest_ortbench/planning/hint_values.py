"""Value hints whose bounds depend on sizes, once the sizes are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.models.symbols import UnknownSymbolError, evaluate

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z")


def resolve_hint(
    info: TensorInfo, hint: ValueHint, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> ValueHint | Failure:
    """Replace every symbol in a hint by its size.

    Returns:
        A hint with concrete ``low``, ``high`` and ``choices``; or a failure, where the values that
        such an input must hold don't exist at this size (positions past the end of a table).
    """
    low = _size(hint.low_dim, sizes, hint.low)
    high = _size(hint.high_dim, sizes, hint.low if hint.high_dim else hint.high)
    if hint.kind == "constant" and "string" not in info.type:
        choices = tuple(_text(choice, sizes) for choice in hint.choices)
        return replace(hint, choices=choices, low_dim="", high_dim="")
    plain = replace(hint, low=low, high=high, low_dim="", high_dim="")
    if hint.kind == "integers":
        return replace(plain, high=max(low, high))
    if hint.kind == "arange":
        return _positions(info, plain, shape)
    return plain


def _positions(info: TensorInfo, hint: ValueHint, shape: tuple[int, ...]) -> ValueHint | Failure:
    count = shape[-1] if shape else 1
    last = int(hint.low) + count - 1
    if 0 <= hint.high < last:
        return Failure(
            kind="unsupported",
            phase="inputs",
            message=(
                f"input {info.name!r} would hold positions up to {last}, and {hint.why} ends at "
                f"{int(hint.high)}"
            ),
            hint="Set a shorter length with --ort-dims",
        )
    if hint.low == 0:
        return hint
    # Counting from elsewhere than 0: the same values in every row, written out.
    values = tuple(str(int(hint.low) + step) for step in range(count))
    return replace(hint, kind="constant", choices=values)


def _size(expression: str, sizes: Mapping[str, int], otherwise: float) -> float:
    if not expression:
        return otherwise
    try:
        return float(evaluate(expression, sizes))
    except (UnknownSymbolError, ArithmeticError):
        return otherwise  # a symbol of an intermediate value: only the smallest one is safe


def _text(choice: str, sizes: Mapping[str, int]) -> str:
    if _NUMBER.match(choice):
        return choice
    try:
        return str(evaluate(choice, sizes))
    except (UnknownSymbolError, ArithmeticError):
        return "1"
