"""MNN, IREE and ncnn without their packages: whose outputs are, and what a killed worker leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.own_folder import OWNER
from pytest_ortbench.engines.iree.worker import Iree
from pytest_ortbench.engines.mnn.worker import Mnn
from pytest_ortbench.engines.ncnn.worker import Ncnn
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask, EngineTensor

TASK = EngineTask(
    path=Path("net.onnx"),
    inputs=(EngineTensor(name="x", type="tensor(float)", shape=(1, 4)),),
    outputs=(EngineTensor(name="y", type="tensor(float)"),),
    threads=1,
)


class Variable:
    """A value of MNN: what it reads is memory of the module."""

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory = memory

    def read(self) -> np.ndarray[Any, Any]:
        return self.memory[:]


class Module:
    """A module that doubles, and has one place for its output."""

    def __init__(self) -> None:
        self.memory = np.zeros((1, 4), np.float32)

    def forward(self, values: Sequence[np.ndarray[Any, Any]]) -> list[Variable]:
        self.memory[:] = 2 * values[0]
        return [Variable(self.memory)]


def test_outputs_of_mnn_stay_when_the_next_inference_runs() -> None:
    engine = Mnn(TASK)
    engine._expr = SimpleNamespace(
        const=lambda values, _shape, _layout, _kind: values, NCHW=0, float="f", int="i"
    )
    infer = engine._inference(Module())
    ones, threes = (np.full((1, 4), value, np.float32) for value in (1, 3))
    (first,) = infer({"x": ones})
    (second,) = infer({"x": threes})
    assert (first.tolist(), second.tolist()) == ([[2.0] * 4], [[6.0] * 4])


@pytest.mark.parametrize("engine", [Mnn(TASK), Iree(TASK), Ncnn(TASK)])
def test_what_is_compiled_lies_in_a_folder_that_says_whose_it_is(
    engine: Mnn | Iree | Ncnn,
) -> None:
    place = engine._place()
    assert (place / OWNER).is_file()
    engine.close()
    assert not place.exists()


class Output:
    """An output of IREE, on a device that hands values over or refuses to."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def to_host(self) -> np.ndarray[Any, Any]:
        if self.reason:
            raise RuntimeError(self.reason)
        return np.ones((1, 4), np.float32)


def test_what_iree_never_answered_is_unsupported_and_what_fails_later_is_an_error() -> None:
    outputs = [Output("no allocation"), Output("no allocation"), Output(), Output("lost")]
    infer = Iree(TASK)._inference(lambda _: outputs.pop(0))
    feeds = {"x": np.ones((1, 4), np.float32)}
    for kind in ("unsupported", "unsupported", "", "error"):
        if not kind:
            assert infer(feeds)[0].tolist() == [[1.0] * 4]
            continue
        with pytest.raises(EngineRefusal) as caught:
            infer(feeds)
        assert caught.value.kind == kind


def test_a_full_device_is_no_matter_of_the_model() -> None:
    outputs = [Output(), Output("RESOURCE_EXHAUSTED; CUDA_ERROR_OUT_OF_MEMORY"), Output("lost")]
    infer = Iree(TASK)._inference(lambda _: outputs.pop(0))
    feeds = {"x": np.ones((1, 4), np.float32)}
    infer(feeds)
    for is_out_of_model in (False, True):
        with pytest.raises(EngineRefusal) as caught:
            infer(feeds)
        assert ("--ort-providers" in caught.value.hint) is is_out_of_model


@pytest.mark.parametrize(
    ("said", "lacking"),
    [("UNAVAILABLE; Vulkan runtime library not available", "libvulkan1"), ("lost", "driver")],
)
def test_the_step_names_what_a_driver_lacks(said: str, lacking: str) -> None:
    def fails(_: str) -> None:
        raise RuntimeError(said)

    engine = Iree(TASK)
    engine._runtime = SimpleNamespace(get_device=fails)
    with pytest.raises(EngineRefusal) as caught:
        engine._open_device()
    assert lacking in caught.value.hint
    assert "--ort-providers=iree:local-task" in caught.value.hint
