"""Memory of conversions: what can't fit is not begun, and what grows has a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from pytest_ortbench.convert import memory
from pytest_ortbench.core import free_memory
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.recipe import Conversion, Recipe
from tests.worker.graphs import serialised, value, weights

from .conversions import DYNAMIC, FP32

_CONVERT = """
import sys
from pathlib import Path
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.convert.make import convert
from pytest_ortbench.models.graph import read_model

def peak_mb():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1000

model = read_model(Path(sys.argv[1]), name="m", source="file")
def make(method, count, folder):
    recipe = Recipe(name="s", base="int8-static", weight_type="int8", activation_type="uint8",
                    calibration=method, calibration_samples=count)
    conversion = Conversion(recipe=recipe, source=model.path, digest="", size_bytes=1,
                            own_precision="fp32", inputs=resolve_inputs(model, batch=1, dims={}))
    folder.mkdir()
    convert(conversion, folder, lambda phase: None)
    return peak_mb()

root = Path(sys.argv[2])
first = make("minmax", 1, root / "minmax")
print(first, make(sys.argv[3], 30, root / "many"))
"""


@pytest.mark.live
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_calibration_keeps_the_activations_of_one_input_set_only(
    tmp_path: Path,
) -> None:
    """Thirty sets of this network's activations are 290 MB, one is 10 MB."""
    nodes, name = [], "x"
    for layer in range(12):
        nodes.append(helper.make_node("Conv", [name, "w"], [f"c{layer}"], name=f"conv{layer}"))
        name = f"c{layer}"
    shape: list[int | str] = ["N", 4, 224, 224]
    source = tmp_path / "m.onnx"
    source.write_bytes(
        serialised(
            nodes,
            [value("x", TensorProto.FLOAT, shape)],
            [value(name, TensorProto.FLOAT, shape)],
            {"w": weights(4, 4, 1, 1, scale=0.5)},
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", _CONVERT, str(source), str(tmp_path), "percentile"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    one, thirty = map(float, done.stdout.splitlines()[-1].split())
    assert thirty - one < 100


_CAPPED = """
import resource
from pathlib import Path
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.convert import memory

memory.free_memory.available = lambda: 1_000_000
before = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
memory.limit(Conversion(recipe=Recipe(name="fp16", base="fp16"), source="", digest="", size_bytes=1,
                        own_precision="fp32", inputs=()))
print(resource.getrlimit(resource.RLIMIT_AS)[0] - before)
"""


@pytest.mark.live
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_small_conversion_has_room_on_a_full_machine() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CAPPED], capture_output=True, text=True, check=True, timeout=600
    )
    assert int(done.stdout) >= 1 << 31


def conversion(recipe: Recipe, own_precision: str, size_bytes: int) -> Conversion:
    return Conversion(
        recipe=recipe,
        source="/none.onnx",
        digest="",
        size_bytes=size_bytes,
        own_precision=own_precision,
        inputs=(),
    )


def test_a_model_that_can_t_fit_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(free_memory, "available", lambda: 3 * 10**9)
    with pytest.raises(WorkerError) as caught:
        memory.limit(conversion(DYNAMIC, "fp32", 2_300_000_000))
    assert caught.value.failure.kind == "unsupported"
    assert re.findall(r"(\d+) GB", caught.value.failure.message)[-2:] == ["9", "3"]


def test_a_model_in_half_precision_needs_the_memory_of_one_twice_as_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is widened first, but for float32 itself, which is all that widening makes."""
    monkeypatch.setattr(free_memory, "available", lambda: 6 * 10**9)
    with pytest.raises(WorkerError) as caught:
        memory.limit(conversion(DYNAMIC, "bf16", 1_150_000_000))
    assert re.findall(r"([\d.]+) GB", caught.value.failure.message) == ["1.1", "9", "6"]
    memory.limit(conversion(FP32, "bf16", 1_150_000_000))
