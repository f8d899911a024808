"""What a tool ran into, as a person reads it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import onnx
import onnxruntime
import pytest

from pytest_ortbench.convert.failure import as_failure, without_nodes
from pytest_ortbench.convert.make import convert
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.recipe import Conversion, Recipe

from .conversions import FP16, conversion_of, mlp


def test_memory_that_runs_out_is_said() -> None:
    conversion = Conversion(
        recipe=FP16, source="", digest="", size_bytes=10**9, own_precision="fp32", inputs=()
    )
    failure = as_failure(MemoryError("Unable to allocate 1 GiB"), conversion)
    assert failure.kind == "out_of_memory"
    assert "fp16" in failure.message
    assert "1.00 GB" in failure.message


INT4 = Conversion(
    recipe=Recipe(name="int4", base="int4"),
    source="",
    digest="",
    size_bytes=1,
    own_precision="fp32",
    inputs=(),
)


def test_a_missing_package_is_named_with_what_brings_it() -> None:
    failure = as_failure(ModuleNotFoundError("No module", name="onnx_ir"), INT4)
    assert (failure.kind, "'pytest-ortbench[int4]'" in failure.hint) == ("unavailable", True)


def test_a_package_that_does_not_load_is_not_called_missing() -> None:
    missing = as_failure(ModuleNotFoundError("No module", name="onnx_ir"), INT4)
    broken = as_failure(ImportError("cannot import name 'x'", name="onnx_ir"), INT4)
    assert ("--force-reinstall" in missing.hint, "--force-reinstall" in broken.hint) == (
        False,
        True,
    )
    assert "cannot import name 'x'" in broken.message


def test_a_node_is_left_out_of_the_precision_that_was_asked_for() -> None:
    own = Recipe(name="mine8", base="int8-dynamic", nodes_to_exclude=("a",))
    assert "[tool.ortbench.precisions.mine8]" in without_nodes(own, "b")
    assert "['a', 'b']" in without_nodes(own, "b")
    assert "--ort-precisions=mine8" in without_nodes(own, "b")
    assert "base = 'fp16'" in without_nodes(FP16, "b")
    assert without_nodes(FP16).startswith("Leave fp16 out of --ort-precisions")


def test_a_part_that_this_onnx_runtime_lacks_is_no_missing_package() -> None:
    name = "onnxruntime.quantization.matmul_nbits_quantizer"
    failure = as_failure(ModuleNotFoundError("No module", name=name), INT4)
    assert (failure.kind, "1.22" in failure.hint) == ("unavailable", True)
    assert failure.message.startswith(f"int4 needs {name}, ")
    assert f" {onnxruntime.__version__} " in failure.message
    other = as_failure(ModuleNotFoundError("No module", name="onnxruntime.later"), INT4)
    assert "newer" not in other.hint  # a build without its tools lacks them in any version
    assert "PyPI" in other.hint
    assert "1.22" not in other.hint


def test_a_compiled_part_that_does_not_load_has_a_step() -> None:
    failure = as_failure(ImportError("numpy.core.multiarray failed to import"), INT4)
    assert failure.kind == "unavailable"
    assert "numpy" in failure.hint


def test_shapes_that_can_t_be_inferred_are_no_matter_of_a_node() -> None:
    failure = as_failure(Exception("Incomplete symbolic shape inference"), INT4)
    assert "nodes_to_exclude" not in failure.hint
    assert "int4" in failure.hint


SOURCE, OUT = "/models/m.onnx", Path("/cache/.1")


@pytest.mark.parametrize(
    ("number", "names", "message", "hint"),
    [
        (
            errno.ENOSPC,
            ["/cache/.1/m"],
            "/cache/.1/m can't be written. ",
            "Free ",
        ),
        (errno.EROFS, ["/cache/.1/m"], "/cache/.1/m can't be written. ", "Name another "),
        (errno.EDQUOT, [], "/cache/.1 can't be written. ", "Free "),
        (
            errno.ENOSPC,
            ["/models/w", "/cache/.1/w"],
            "/cache/.1/w can't be written. ",
            "Free ",
        ),
        (
            errno.EACCES,
            ["/cache/.1/m"],
            "/cache/.1/m can't be written. ",
            "Name another ",
        ),
        (
            errno.EACCES,
            ["/models/w"],
            "/models/w can't be used. ",
            "Make the file readable",
        ),
        (
            errno.ENOENT,
            ["/models/m.onnx"],
            "/models/m.onnx can't be used. ",
            "Put the file back",
        ),
        (
            errno.EIO,
            ["/data/set0.npz"],
            "/data/set0.npz can't be used. ",
            "Run again. ",
        ),
        (errno.EIO, [], "a file in /models or /cache/.1 can't be used. ", "Run again. "),
    ],
)
def test_a_file_that_can_t_be_read_is_not_called_a_full_cache(
    number: int, names: list[str], message: str, hint: str
) -> None:
    conversion = Conversion(
        recipe=FP16, source=SOURCE, digest="", size_bytes=1, own_precision="fp32", inputs=()
    )
    # As the system gives them: a name, what Windows says, a second name.
    first, second = (*names, None, None)[:2]
    error = OSError(number, os.strerror(number), first, None, second)
    failure = as_failure(error, conversion, OUT)
    assert failure.kind == "error"
    assert failure.message.startswith(message)
    assert f"'{os.strerror(number)}'" in failure.message
    assert failure.hint.startswith(hint)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_no_unreadable_file(number: int) -> None:
    conversion = Conversion(
        recipe=FP16, source=SOURCE, digest="", size_bytes=1, own_precision="fp32", inputs=()
    )
    failure = as_failure(OSError(number, os.strerror(number), SOURCE), conversion, OUT)
    assert failure.kind == "error"
    assert SOURCE in failure.message
    assert "ulimit -n" in failure.hint


def test_memory_that_the_system_denies_is_a_lack_of_memory() -> None:
    conversion = Conversion(
        recipe=FP16, source=SOURCE, digest="", size_bytes=1, own_precision="fp32", inputs=()
    )
    error = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), SOURCE)
    assert as_failure(error, conversion).kind == "out_of_memory"


def test_weights_that_went_away_after_planning_are_named(tmp_path: Path) -> None:
    path = tmp_path / "in" / "m.onnx"
    path.parent.mkdir()
    onnx.save(
        onnx.load_from_string(mlp()),
        str(path),
        save_as_external_data=True,
        location="w",
        size_threshold=0,
    )
    conversion = conversion_of(path, FP16)
    (tmp_path / "in" / "w").unlink()
    with pytest.raises(WorkerError) as caught:
        convert(conversion, tmp_path, lambda _: None)
    failure = caught.value.failure
    assert failure.message.startswith(f"{tmp_path / 'in' / 'w'} ")
    assert failure.message.endswith(f"'{os.strerror(errno.ENOENT)}'")
    assert failure.kind == "error"


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("two nodes with same node name (mm0)", "mm0"),
        ("Expected float in node with name 'relu0'.", "relu0"),
        ("the shape of node mm1. is unknown", "mm1"),
        ("a node name that is nowhere", ""),
        ("mm0 is wrong", ""),
    ],
)
def test_a_node_is_named_only_if_the_model_has_it(tmp_path: Path, text: str, node: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp())
    message = as_failure(ValueError(text), conversion_of(path, FP16)).message
    at = f" at node '{node}'" if node else ""
    assert message.startswith(f"fp16 can't be made{at}. ")
    assert f"ValueError: {text.rstrip('.')}" in message
