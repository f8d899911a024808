"""Numbers of types that numpy lacks, against ml_dtypes: every code, and what rounding gives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from pytest_ortbench.core.element_types import ELEMENT_TYPES, STAND_INS
from pytest_ortbench.worker.element_bits import from_bits, from_codes, represented, to_bits

#: The name of each type in ml_dtypes.
ORACLES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2,
    "uint2": ml_dtypes.uint2,
}


def test_every_stand_in_has_an_oracle() -> None:
    assert ORACLES.keys() == STAND_INS.keys()


def all_codes(element: str) -> np.ndarray:
    """Every value of a type, in its own type of ml_dtypes."""
    bits = ELEMENT_TYPES[element].bits
    if bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(ORACLES[element])
    return np.arange(1 << bits, dtype=np.uint8).view(ORACLES[element])


@pytest.mark.parametrize("element", ORACLES)
def test_every_code_is_the_number_that_it_stands_for(element: str) -> None:
    values = all_codes(element)
    right = values.astype(STAND_INS[element])
    codes = values.view(np.uint8)
    found = (
        from_bits(codes, element, values.shape)
        if element == "bfloat16"
        else from_codes(codes, element)
    )
    assert found.dtype == STAND_INS[element]
    assert np.array_equal(found, right, equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize("element", ORACLES)
@pytest.mark.parametrize("count", [0, 1, 3, 16])
def test_numbers_come_back_from_their_bits(element: str, count: int) -> None:
    numbers = all_codes(element).astype(STAND_INS[element])[-count:] if count else np.zeros(0)
    data = to_bits(numbers, element)
    assert data.dtype == np.uint8
    assert data.size == -(-numbers.size * ELEMENT_TYPES[element].bits // 8)
    found = from_bits(data, element, numbers.shape)
    assert np.array_equal(found, numbers, equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize("element", [e for e in ORACLES if STAND_INS[e] == "float32"])
def test_other_numbers_become_the_nearest(element: str) -> None:
    drawn = np.random.default_rng(0).standard_normal(500).astype(np.float32) * 2
    if element == "float8e8m0":
        drawn = np.abs(drawn) + 0.1
    right = drawn.astype(ORACLES[element]).astype(np.float32)
    found = represented(drawn, element)
    assert np.abs(found - drawn).max() <= np.abs(right - drawn).max()
    if element != "float8e8m0":  # there ml_dtypes rounds logarithms
        assert np.array_equal(found, right)


def test_infinity_and_nan_stay_where_the_type_has_them() -> None:
    odd = np.array([np.inf, -np.inf, np.nan], np.float32)
    assert np.array_equal(represented(odd, "float8e5m2"), odd, equal_nan=True)
    assert np.array_equal(represented(odd, "bfloat16"), odd, equal_nan=True)
    assert represented(odd, "float8e4m3fn")[:2].tolist() == [448, -448]
    assert np.isnan(represented(odd, "float8e4m3fn")[2])


def test_types_of_numpy_are_left_alone() -> None:
    values = np.array([0.1, 1e-30], np.float32)
    assert represented(values, "float") is values


def test_too_few_bytes_are_an_error() -> None:
    with pytest.raises(ValueError, match="3 bytes for 2 values"):
        from_bits(np.zeros(3, np.uint8), "bfloat16", (2,))
