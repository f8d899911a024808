"""The element types stand once, and are those of onnx, numpy and ml_dtypes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from pytest_ortbench.core.element_types import (
    ELEMENT_BITS,
    ELEMENT_NAMES,
    ELEMENT_TYPES,
    NUMPY_NAMES,
)


def test_every_type_of_the_installed_onnx_has_its_number_and_name():
    of_onnx = {
        number: name.lower()
        for name, number in onnx.TensorProto.DataType.items()
        if name != "UNDEFINED"
    }
    assert of_onnx.items() <= ELEMENT_NAMES.items()


@pytest.mark.parametrize("element", ELEMENT_TYPES.values(), ids=lambda element: element.name)
def test_a_size_is_that_of_the_array_that_holds_the_type(element):
    if element.name == "string":
        assert element.name not in ELEMENT_BITS
        return
    if element.number not in onnx.TensorProto.DataType.values():
        pytest.skip("the installed onnx does not have the type")
    dtype = helper.tensor_dtype_to_np_dtype(element.number)
    if element.bits >= 8:
        assert dtype.itemsize * 8 == element.bits
    else:  # packed in files, one byte each in arrays
        assert str(element.bits) in dtype.name
        assert dtype.itemsize == 1


def test_numpy_has_the_types_that_are_said_to_be_its_own():
    for name, numpy_name in NUMPY_NAMES.items():
        number = ELEMENT_TYPES[name].number
        assert helper.tensor_dtype_to_np_dtype(number) == np.dtype(numpy_name)
    others = ELEMENT_TYPES.keys() - NUMPY_NAMES.keys()
    assert all(not hasattr(np, name) for name in others)
