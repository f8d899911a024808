"""What a tool ran into, as a person reads it."""

from __future__ import annotations

from pytest_ortbench.core.recipe import Conversion, Recipe

from .conversions import FP16


def test_memory_that_runs_out_is_said() -> None:
    from pytest_ortbench.worker.convert.failure import as_failure

    conversion = Conversion(
        recipe=FP16, source="", digest="", size_bytes=10**9, own_precision="fp32", inputs=()
    )
    failure = as_failure(MemoryError("Unable to allocate 1 GiB"), conversion)
    assert (failure.kind, failure.message) == (
        "out_of_memory",
        "memory ran out while making fp16 of 1.0 GB",
    )


def test_a_missing_package_is_named_with_what_brings_it() -> None:
    from pytest_ortbench.worker.convert.failure import as_failure

    conversion = Conversion(
        recipe=Recipe(name="int4", base="int4"),
        source="",
        digest="",
        size_bytes=1,
        own_precision="fp32",
        inputs=(),
    )
    failure = as_failure(ModuleNotFoundError("No module", name="onnx_ir"), conversion)
    assert (failure.kind, failure.hint) == (
        "unavailable",
        "pip install 'pytest-ortbench[int4]'",
    )
