"""Angles of rotary embedding, with the same bits on every machine.

Cosine and sine of one step are taken to 50 decimal digits; those of all other positions follow by
products and sums of float64, which round as IEEE 754 says.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

_DIGITS = 50


def frequencies(base: int, size: int) -> tuple[Decimal, ...]:
    """Return the turn from one position to the next of each pair of elements, in radians.

    Args:
        base: Of the powers, 10000 in J. Su et al., "RoFormer", Neurocomputing 2024.
        size: Elements of a head, two a pair.
    """
    with localcontext(Context(prec=_DIGITS)):
        logarithm = Decimal(base).ln()
        return tuple((-logarithm * index / size).exp() for index in range(0, size, 2))


def slowed(turns: Sequence[Decimal], factors: Sequence[Fraction]) -> tuple[Decimal, ...]:
    """Return turns of which each is divided by its factor, so that more positions fit into one.

    Args:
        turns: Of one step, in radians.
        factors: As many; LongRoPE (Y. Ding et al., ICML 2024) searches for them.
    """
    with localcontext(Context(prec=_DIGITS)):
        return tuple(
            turn * factor.denominator / factor.numerator
            for turn, factor in zip(turns, factors, strict=True)
        )


def long_gain(context: int, original: int) -> float:
    """Return the factor of the tables that keeps attention as sharp in a longer context.

    Args:
        context: Its length.
        original: The length before it was extended.
    """
    with localcontext(Context(prec=_DIGITS)):
        stretch = Decimal(context) / original
        return float((1 + stretch.ln() / Decimal(original).ln()).sqrt())


def rotation_tables(
    turns: Sequence[Decimal], positions: int, *, gain: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the cosines and the sines of all positions, each [positions, turns].

    Args:
        turns: Of one step, in radians.
        positions: Number of them, from 0.
        gain: Factor of all values.
    """
    cosines = np.ones((1, len(turns)))
    sines = np.zeros((1, len(turns)))
    with localcontext(Context(prec=_DIGITS)):
        while len(cosines) < positions:  # twice as many by one turn of those that are there
            pairs = [_cosine_and_sine(turn * len(cosines)) for turn in turns]
            cosine, sine = (
                np.array(values, dtype=np.float64) for values in zip(*pairs, strict=True)
            )
            cosines, sines = (
                np.concatenate([cosines, cosines * cosine - sines * sine]),
                np.concatenate([sines, sines * cosine + cosines * sine]),
            )
    return (
        (cosines[:positions] * gain).astype(np.float32),
        (sines[:positions] * gain).astype(np.float32),
    )


def _cosine_and_sine(angle: Decimal) -> tuple[float, float]:
    """Return both by their series, from an angle so small that it ends soon, doubled again."""
    halvings = 0
    while abs(angle) > Decimal("0.1"):
        angle, halvings = angle / 2, halvings + 1
    sums = [Decimal(0), Decimal(0)]
    term, order = Decimal(1), 0
    while abs(term) > Decimal(10) ** -_DIGITS:
        sums[order % 2] += term if order % 4 < 2 else -term
        order += 1
        term = term * angle / order
    cosine, sine = sums
    for _ in range(halvings):
        cosine, sine = cosine * cosine - sine * sine, 2 * cosine * sine
    return float(cosine), float(sine)
