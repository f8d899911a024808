"""Stages around a real session: what they get, what is timed, what is said of mistakes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.passes.stages.worker import MOST_FRAMES, UserStages
from tests.worker.sessions import cpu_session

pytestmark = pytest.mark.live

X = InputSpec(name="x", type="tensor(float)", shape=(1, 4), hint=ValueHint(kind="normal"))
FEEDS = {"x": np.ones((1, 4), np.float32)}

Make = Callable[[str], UserStages]


def double() -> Any:
    """A session that adds ``x`` to itself."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opset)
    return cpu_session(model.SerializeToString())


@pytest.fixture
def stages_of(tmp_path: Path) -> Make:
    def make(source: str) -> UserStages:
        path = tmp_path / "own_stages.py"
        path.write_text(textwrap.dedent(source))
        return UserStages(path, double(), [X], FEEDS)

    return make


def test_a_frame_goes_through_all_stages(stages_of: Make, tmp_path: Path) -> None:
    stages = stages_of(f"""
        import numpy as np

        def frames():
            return [1, 2, 3]

        def preprocess(frame):
            return {{"x": np.full((1, 4), frame, np.float32)}}

        def postprocess(outputs, frame):
            with open({str(tmp_path / "seen")!r}, "a") as file:
                print(frame, outputs["y"].tolist(), file=file)
        """)
    assert stages.functions == ("frames", "preprocess", "postprocess")
    assert stages.frames == [1, 2, 3]
    block = stages.sequential(4)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen == [f"{n} {[[2.0 * n] * 4]}" for n in (1, 2, 3, 1)]
    parts = zip(block.preprocess_ns, block.inference_ns, block.postprocess_ns, strict=True)
    assert [sum(part) for part in parts] == list(block.frame_ns)
    assert len(block.frame_ns) == 4
    assert sum(block.frame_ns) <= block.wall_ns


def test_each_stage_is_charged_for_itself(stages_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still but where a stage moves it."""
    moments = [0]
    clock = SimpleNamespace(perf_counter_ns=lambda: moments[-1], process_time_ns=lambda: 0)
    monkeypatch.setattr("pytest_ortbench.passes.stages.worker.time", clock)
    monkeypatch.setattr("builtins.MOMENTS", moments, raising=False)
    stages = stages_of("""
        def preprocess(frame):
            MOMENTS.append(MOMENTS[-1] + 20)
            return frame

        def postprocess(outputs):
            MOMENTS.append(MOMENTS[-1] + 10)
        """)
    block = stages.sequential(3)
    assert block.preprocess_ns == (20, 20, 20)
    assert block.inference_ns == (0, 0, 0)
    assert block.postprocess_ns == (10, 10, 10)
    assert (block.frame_ns, block.wall_ns) == ((30, 30, 30), 90)


def test_one_stage_is_enough_and_the_cases_own_inputs_are_the_frame(stages_of: Make) -> None:
    stages = stages_of("def postprocess(outputs): assert outputs['y'].tolist() == [[2.0] * 4]")
    stages.check()
    block = stages.sequential(2)
    assert block.preprocess_ns == ()
    assert len(block.postprocess_ns) == len(block.inference_ns) == 2


def test_overlapped_stages_really_run_at_a_time(stages_of: Make) -> None:
    """Preprocessing and postprocessing wait for each other, which one thread could not do."""
    stages = stages_of("""
        import threading

        both = threading.Barrier(2, timeout=600)
        calls = []

        def preprocess(frame):
            calls.append("pre")
            if calls.count("pre") > 1:
                both.wait()
            return frame

        def postprocess(outputs):
            calls.append("post")
            if calls.count("post") < 5:
                both.wait()
        """)
    block = stages.overlapped(5)
    assert len(block.frame_ns) == 5
    assert min(block.frame_ns) > 0
    assert block.wall_ns > 0


def test_frames_without_an_end_are_cut(stages_of: Make) -> None:
    stages = stages_of("""
        import itertools

        def frames():
            return itertools.count()

        def preprocess(frame):
            return {}
        """)
    assert len(stages.frames) == MOST_FRAMES


def test_a_module_beside_the_file_can_be_imported(stages_of: Make, tmp_path: Path) -> None:
    (tmp_path / "beside_stages.py").write_text("FACTOR = 1\n")
    stages = stages_of("""
        from beside_stages import FACTOR

        def preprocess(frame):
            return {"x": frame["x"] * FACTOR}
        """)
    stages.check()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "x = 1",
            "own_stages.py defined neither preprocess(frame) nor postprocess(outputs) when it was "
            "run",
        ),
        (
            "import numpy\nimport no_such_module",
            "own_stages.py:2: own_stages.py raised ModuleNotFoundError: "
            "No module named 'no_such_module'",
        ),
        (
            "def frames():\n    return []\ndef preprocess(frame):\n    return frame",
            "frames() of own_stages.py returned no frame",
        ),
        (
            "def frames():\n    return 5\ndef preprocess(frame):\n    return frame",
            "frames() raised TypeError: 'int' object is not iterable",
        ),
        (
            "import sys\nsys.exit('no camera')",
            "own_stages.py:2: own_stages.py raised SystemExit: no camera",
        ),
    ],
)
def test_a_file_that_is_wrong(stages_of: Make, source: str, message: str) -> None:
    with pytest.raises(WorkerError) as caught:
        stages_of(source)
    assert caught.value.failure.phase == "stages"
    assert caught.value.failure.message == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "def preprocess(frame):\n    y = 1\n    return {'x': y / 0}",
            "own_stages.py:3: preprocess of frame 0 raised ZeroDivisionError: division by zero",
        ),
        (
            "def postprocess(outputs):\n    outputs['boxes']",
            "own_stages.py:2: postprocess of frame 0 raised KeyError: 'boxes'",
        ),
        (
            "def preprocess(frame):\n    return frame['x']",
            "preprocess(frame) in own_stages.py returned a value of type ndarray for frame 0, not "
            "a dictionary of arrays",
        ),
        (
            "def preprocess(frame):\n    return {'image': frame['x']}",
            "preprocess(frame) in own_stages.py returned arrays for image for frame 0, but the "
            "model takes x",
        ),
        (
            "def preprocess(frame):\n    return {'x': frame['x'].astype('float64')}",
            "preprocess(frame) in own_stages.py returned 'x' as float64 [1, 4] for frame 0, but "
            "the case has float32 [1, 4]",
        ),
        (
            "def frames():\n    return [3]\ndef postprocess(outputs):\n    pass",
            "frames() in own_stages.py returned a value of type int as frame 0, not a dictionary "
            "of arrays",
        ),
    ],
)
def test_a_stage_that_is_wrong(stages_of: Make, source: str, message: str) -> None:
    stages = stages_of(source)
    with pytest.raises(WorkerError) as caught:
        stages.check()
    assert caught.value.failure.message == message


@pytest.mark.parametrize("way", ["sequential", "overlapped"])
@pytest.mark.parametrize("stage", ["preprocess(frame)", "postprocess(outputs)"])
def test_a_stage_that_fails_later(stages_of: Make, way: str, stage: str) -> None:
    """Whichever thread it is in, the error comes back with its place, and nobody waits for ever."""
    stages = stages_of(f"""
        calls = 0

        def {stage}:
            global calls
            calls += 1
            if calls == 7:
                raise ValueError("the seventh")
            return {"frame" if stage.startswith("pre") else "None"}
        """)
    with pytest.raises(WorkerError) as caught:
        getattr(stages, way)(20)
    name = stage.partition("(")[0]
    message = f"own_stages.py:8: {name} of frame 0 raised ValueError: the seventh"
    assert caught.value.failure.message == message


@pytest.mark.parametrize("way", ["sequential", "overlapped"])
def test_an_error_of_the_session_is_not_the_users(stages_of: Make, way: str) -> None:
    stages = stages_of("def preprocess(frame):\n    return {'x': 'text'}")
    with pytest.raises(Exception, match="x") as caught:
        getattr(stages, way)(10)
    assert not isinstance(caught.value, WorkerError)
