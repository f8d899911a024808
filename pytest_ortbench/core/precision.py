"""Names of precisions and the accuracy floor of each."""

from __future__ import annotations

#: Smallest SQNR in dB that a precision may have against the reference, without labels.
#: A provider that keeps weights in half precision was seen 9.5 % off on an fp32 transformer, which
#: is 20 dB: only a floor that knows the precision sees it.
SQNR_FLOOR_DB: dict[str, float] = {
    "native": 60.0,
    "fp32": 60.0,
    "fp16": 40.0,
    "bf16": 30.0,
    "int8-dynamic": 15.0,
    "int8-static": 15.0,
    "int4": 10.0,
}

PRECISIONS: tuple[str, ...] = tuple(SQNR_FLOOR_DB)
