"""Weights that are the same bits on every machine: integer draws and exact arithmetic.

numpy's distributions, ``exp`` and ``tanh`` differ in the last bit between processors and versions.
So a draw is 16 bits of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014), an integer, and a weight is that integer times a scale whose
product float32 holds without rounding.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

#: Variance of a draw, which is uniform over all 16-bit integers; its mean is -1/2.
DRAW_VARIANCE = Fraction(2**32 - 1, 12)

#: Means and variances of what a layer sees are kept as multiples of 1/1024: exact in sums.
MOMENT_UNIT = 1024

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1
_CHUNK = 1 << 15  # words a step: both work arrays stay in the second-level cache


@dataclass(frozen=True, slots=True)
class DrawScale:
    """The factor ``multiplier · 2^-exponent``; at most 8 bits, so that draw times factor is exact.

    Attributes:
        multiplier: From 0 up to 255.
        exponent: Power of two that it is divided by.
    """

    multiplier: int
    exponent: int

    @property
    def value(self) -> float:
        """The factor itself, exact in float32."""
        return math.ldexp(self.multiplier, -self.exponent)


def scale_for(variance: Fraction) -> DrawScale:
    """The scale that gives draws this variance, to one part in a hundred.

    Args:
        variance: Of the weights, greater than zero.
    """
    square = variance / DRAW_VARIANCE  # of the factor
    exponent = 0
    while square * 4**exponent < 127**2:
        exponent += 1
    # To the nearest integer: twice the root, and one, halved.
    return DrawScale((math.isqrt(math.floor(square * 4 ** (exponent + 1))) + 1) // 2, exponent)


def scaled(draws: NDArray[np.int32], scale: DrawScale) -> NDArray[np.float32]:
    """Draws times their scale as float32, exact while a draw has at most 16 bits."""
    values = draws.astype(np.float32)
    values *= np.float32(scale.value)
    return values


def moment(sums: NDArray[np.int64], scale: DrawScale, power: int = 1) -> NDArray[np.float32]:
    """Sums over draws, times a moment in units of 1/1024, as float32.

    Every step rounds as IEEE 754 says, so that all processors agree.

    Args:
        sums: Of draws (``power`` 1) or of their squares (``power`` 2), times the moment.
        scale: Of the draws.
        power: To which the scale is taken.
    """
    factor = math.ldexp(scale.multiplier**power, -scale.exponent * power) / MOMENT_UNIT
    return (sums.astype(np.float64) * factor).astype(np.float32)


class Draws:
    """Streams of integers, one a name; a stream does not depend on what else was drawn.

    Args:
        seed: Any text; chooses the family of streams.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def integers(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Integers uniform over -32768 … 32767.

        Args:
            name: Of the stream.
            shape: Of the result.
        """
        count = math.prod(shape)
        drawn = np.empty(count, dtype=np.int32)
        key = self._key(name)
        steps = np.arange(1, _CHUNK + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        work = np.empty_like(steps)
        for start in range(0, count, 4 * _CHUNK):
            words = _mixed(steps + np.uint64((key + start // 4 * _GOLDEN) & _WORD), work)
            block = words.astype("<u8", copy=False).view("<i2")[: count - start]
            drawn[start : start + block.size] = block
        return drawn.reshape(shape)

    def choices(self, name: str, shape: tuple[int, ...], count: int) -> NDArray[np.int64]:
        """Integers from 0 up to ``count`` - 1, each as likely as the others to 2^-16.

        Args:
            name: Of the stream.
            shape: Of the result.
            count: At most 65536.
        """
        return (self.integers(name, shape).astype(np.int64) + 2**15) * count >> 16

    def _key(self, name: str) -> int:
        digest = hashlib.sha256(f"{self._seed}/{name}".encode()).digest()
        return int.from_bytes(digest[:8], "little")


def _mixed(state: NDArray[np.uint64], work: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function, in place; ``work`` is overwritten."""
    for bits, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        np.right_shift(state, np.uint64(bits), out=work)
        np.bitwise_xor(state, work, out=state)
        if factor != 1:
            np.multiply(state, np.uint64(factor), out=state)
    return state
