"""Bits of the mantissa that a product kept, counted from what came of known steps."""

from __future__ import annotations

import math

import pytest

from pytest_ortbench.core.mantissa import FLOAT32_BITS, format_words, kept_bits, mantissa_steps

ROWS = 128


def cut(bits: int) -> list[float]:
    """What a product gives that keeps so many bits, as hardware that cuts off the others does."""
    step = 2.0**bits
    return [int(value * step) / step for value in mantissa_steps(ROWS)]


@pytest.mark.parametrize("bits", [7, 10, 16, 23])
def test_bits_that_are_kept_are_counted(bits: int) -> None:
    assert kept_bits(cut(bits)) == bits


def test_bits_that_are_rounded_up_are_not_kept() -> None:
    step = 2.0**10
    assert kept_bits([-int(-value * step // 1) / step for value in mantissa_steps(ROWS)]) == 10


def test_one_wrong_value_counts() -> None:
    assert kept_bits([*cut(FLOAT32_BITS)[:-1], 1.0]) == (ROWS - 1) % FLOAT32_BITS


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_values_of_something_else_kept_nothing(value: float) -> None:
    assert kept_bits([value] * ROWS) == 0
    assert kept_bits([*cut(FLOAT32_BITS)[:FLOAT32_BITS], value]) == 0


def test_too_few_values_tell_nothing() -> None:
    assert kept_bits(cut(FLOAT32_BITS)[: FLOAT32_BITS - 1]) is None


def test_only_formats_that_keep_so_many_are_named() -> None:
    assert "bfloat16" in format_words(7)
    assert format_words(9).split()[0] == "9"
    assert "as" not in format_words(9).split()
