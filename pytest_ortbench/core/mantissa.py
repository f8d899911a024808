"""How many bits of float32 a product keeps, told by products of 1 + 2^-k with 1. Pure."""

from __future__ import annotations

from collections.abc import Sequence

#: Bits of the mantissa, the leading one apart.
FLOAT32_BITS, TF32_BITS, BFLOAT16_BITS = 23, 10, 7

#: What keeps so many.
_FORMATS = {
    FLOAT32_BITS: "float32",
    TF32_BITS: "TF32 or float16",
    BFLOAT16_BITS: "bfloat16",
}


def mantissa_steps(count: int) -> tuple[float, ...]:
    """Return 1 + 2^-k for each k in turn, over and over.

    Args:
        count: How many values.
    """
    return tuple(1 + 2.0 ** -(1 + place % FLOAT32_BITS) for place in range(count))


def kept_bits(came: Sequence[float]) -> int | None:
    """Return how many bits of the mantissa came out as they went in.

    Args:
        came: What came of :func:`mantissa_steps`, multiplied by 1.

    Returns:
        0 for values that have nothing to do with what was fed, NaN among them; ``None`` for too
        few.
    """
    if len(came) < FLOAT32_BITS:
        return None
    fed, bits = mantissa_steps(len(came)), 0
    for k in range(1, FLOAT32_BITS + 1):
        places = range(k - 1, len(fed), FLOAT32_BITS)
        if not all(abs(came[place] - fed[place]) <= 2.0 ** -(k + 2) for place in places):
            break
        bits = k
    return bits


def format_words(bits: int) -> str:
    """Say how many bits were kept, and what keeps so many: ``7 of 23 bits, as bfloat16 does``.

    Args:
        bits: Of the mantissa.
    """
    name = _FORMATS.get(bits, "")
    return f"{bits} of {FLOAT32_BITS} bits" + (f", as {name} does" if name else "")
