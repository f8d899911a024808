"""The element types of ONNX: the number of each in files, its name, its size and numpy's name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """What the elements of a tensor are.

    Attributes:
        number: In files: ``TensorProto.DataType``.
        name: ONNX Runtime's spelling, as in ``tensor(float)``.
        bits: Of an element; 0 for strings, which have no size that could be counted.
        numpy_name: What numpy calls the type; empty for what numpy does not have.
        stand_in: Where numpy does not have it: its type that holds all these numbers. Empty where
            ONNX Runtime can't be given such a tensor either.
    """

    number: int
    name: str
    bits: int
    numpy_name: str = ""
    stand_in: str = ""


_TYPES = (
    ElementType(number=1, name="float", bits=32, numpy_name="float32"),
    ElementType(number=2, name="uint8", bits=8, numpy_name="uint8"),
    ElementType(number=3, name="int8", bits=8, numpy_name="int8"),
    ElementType(number=4, name="uint16", bits=16, numpy_name="uint16"),
    ElementType(number=5, name="int16", bits=16, numpy_name="int16"),
    ElementType(number=6, name="int32", bits=32, numpy_name="int32"),
    ElementType(number=7, name="int64", bits=64, numpy_name="int64"),
    ElementType(number=8, name="string", bits=0, numpy_name="object"),
    ElementType(number=9, name="bool", bits=8, numpy_name="bool"),
    ElementType(number=10, name="float16", bits=16, numpy_name="float16"),
    ElementType(number=11, name="double", bits=64, numpy_name="float64"),
    ElementType(number=12, name="uint32", bits=32, numpy_name="uint32"),
    ElementType(number=13, name="uint64", bits=64, numpy_name="uint64"),
    ElementType(number=14, name="complex64", bits=64, numpy_name="complex64"),
    ElementType(number=15, name="complex128", bits=128, numpy_name="complex128"),
    ElementType(number=16, name="bfloat16", bits=16, stand_in="float32"),
    ElementType(number=17, name="float8e4m3fn", bits=8, stand_in="float32"),
    ElementType(number=18, name="float8e4m3fnuz", bits=8, stand_in="float32"),
    ElementType(number=19, name="float8e5m2", bits=8, stand_in="float32"),
    ElementType(number=20, name="float8e5m2fnuz", bits=8, stand_in="float32"),
    ElementType(number=21, name="uint4", bits=4, stand_in="uint8"),
    ElementType(number=22, name="int4", bits=4, stand_in="int8"),
    ElementType(number=23, name="float4e2m1", bits=4, stand_in="float32"),
    ElementType(number=24, name="float8e8m0", bits=8, stand_in="float32"),
    ElementType(number=25, name="uint2", bits=2, stand_in="uint8"),
    ElementType(number=26, name="int2", bits=2, stand_in="int8"),
    ElementType(number=27, name="float6e2m3", bits=6),
    ElementType(number=28, name="float6e3m2", bits=6),
)

#: Every element type, by its name.
ELEMENT_TYPES: dict[str, ElementType] = {element.name: element for element in _TYPES}

#: Name of every element type, by its number in files.
ELEMENT_NAMES: dict[int, str] = {element.number: element.name for element in _TYPES}

#: Bits of an element, by the type's name; strings are not among them.
ELEMENT_BITS: dict[str, int] = {element.name: element.bits for element in _TYPES if element.bits}

#: numpy's name of every element type that numpy has, by its name in ONNX Runtime.
NUMPY_NAMES: dict[str, str] = {
    element.name: element.numpy_name for element in _TYPES if element.numpy_name
}

#: numpy's name of the type whose numbers stand for those of a type that numpy lacks, by its name.
STAND_INS: dict[str, str] = {
    element.name: element.stand_in for element in _TYPES if element.stand_in
}


def element_of(type_name: str) -> str:
    """Return the element type of a tensor, or of the tensors in a sequence: ``bfloat16``."""
    return type_name.rsplit("(", 1)[-1].rstrip(")")
