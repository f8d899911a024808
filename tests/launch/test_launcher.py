"""Workers that are real processes on a real ONNX Runtime."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import Provider, Runtime, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CHANGED_FILE, Failure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    ProfilePlacement,
    ReadMemory,
    TimeBlock,
    WarmUpFor,
)
from tests.launch.cases import case_of, relu, save, x_input

_DESCRIPTORS = Path("/proc/self/fd")


def failure_of(launcher: ProcessLauncher, path: Path, **fields: object) -> Failure:
    """The failure that opening a case ends with."""
    with pytest.raises(WorkerError) as caught:
        launcher.open(replace(case_of(path), **fields), worker=0, deadline=None)  # type: ignore[arg-type]
    return caught.value.failure


@pytest.mark.live
def test_a_case_from_open_to_close(tmp_path: Path) -> None:
    phases: list[str] = []
    launcher = ProcessLauncher(on_phase=phases.append, log_folder=tmp_path / "logs")
    case = case_of(relu(tmp_path / "relu.onnx"))
    worker = launcher.open(case, worker=0, deadline=None)
    assert worker.opened.info.version == onnxruntime.__version__
    assert worker.opened.info.numpy == np.__version__
    assert "onnxruntime" in worker.opened.info.distributions
    assert worker.opened.info.pid == worker.pid
    assert worker.opened.startup.import_ns > 0
    assert worker.opened.startup.session_create_ns > 0
    assert worker.opened.startup.first_inference_ns > 0
    assert worker.opened.startup.provider_init_ns is None
    assert 0 < worker.opened.threads <= worker.opened.cpus
    assert worker.opened.clock_pair_ns > 0

    warm_up = worker.ask(WarmUpFor(budget_s=2.0))
    assert warm_up.count >= 20
    assert len(warm_up.durations_ns) <= 500
    block = worker.ask(TimeBlock(iterations=50))
    assert len(block.durations_ns) == 50
    assert min(block.durations_ns) > 0
    assert block.wall_ns >= sum(block.durations_ns)
    worker.pause()
    assert psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED
    worker.resume()
    assert len(worker.ask(TimeBlock(iterations=3)).durations_ns) == 3

    first, last = worker.ask(CheckOutputs(run="first")), worker.ask(CheckOutputs(run="last"))
    assert (first.run, last.run) == ("first", "last")
    assert first.digest == last.digest
    memory = worker.ask(ReadMemory())
    assert memory.baseline_bytes is not None
    assert memory.peak_bytes is not None
    assert memory.session_bytes is not None
    assert 0 < memory.session_bytes <= memory.peak_bytes
    assert memory.device_bytes is None
    assert "CPUExecutionProvider" in memory.device_source.split()

    placement = worker.ask(ProfilePlacement())
    assert placement.executed == {"CPUExecutionProvider": 1}
    accuracy = worker.ask(
        CompareOutputs(reference=str(launcher.reference(case, tmp_path / "scratch")))
    )
    assert [output.exact for output in accuracy.outputs] == [True]
    with pytest.raises(WorkerError, match="released"):
        worker.ask(TimeBlock(iterations=1))
    worker.close()
    worker.close()
    launcher.close()
    assert phases[:5] == ["start", "import", "inputs", "session", "first"]
    assert not psutil.pid_exists(worker.opened.info.pid)


def test_a_reference_is_made_once_for_the_same_inputs(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    case = case_of(relu(tmp_path / "relu.onnx"))
    one = launcher.reference(case, tmp_path / "scratch")
    made = one.stat().st_mtime_ns
    assert launcher.reference(case, tmp_path / "scratch") == one
    assert one.stat().st_mtime_ns == made
    assert launcher.reference(replace(case, seed=1), tmp_path / "scratch") != one
    other = replace(case, inputs=(x_input((3, 4)),))
    assert launcher.reference(other, tmp_path / "scratch") != one


def test_a_reference_comes_from_the_interpreter_that_runs_pytest(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    elsewhere = Runtime(label="elsewhere", command=("/nope/python",))
    case = case_of(relu(tmp_path / "relu.onnx"), runtime=elsewhere)
    assert launcher.reference(case, tmp_path / "scratch").exists()


def test_a_reference_that_fails_here_is_tried_where_the_case_runs(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    elsewhere = Runtime(label="elsewhere", command=("/nope/python",))
    case = case_of(tmp_path / "missing.onnx", runtime=elsewhere)
    with pytest.raises(WorkerError, match="/nope/python"):
        launcher.reference(case, tmp_path / "scratch")


@pytest.mark.live
def test_a_reference_that_fails_is_tried_once(tmp_path: Path) -> None:
    """Else one that is too slow takes its whole timeout again for every provider and precision."""
    phases: list[str] = []
    launcher = ProcessLauncher(on_phase=phases.append)
    case = case_of(tmp_path / "missing.onnx")
    failures = []
    for provider in (case.provider, Provider(alias="cuda", name="CUDAExecutionProvider")):
        with pytest.raises(WorkerError) as caught:
            launcher.reference(replace(case, provider=provider), tmp_path / "scratch")
        failures.append(caught.value.failure)
    assert failures[0] == failures[1]
    assert phases.count("start") == 1
    # Other inputs are another reference.
    with pytest.raises(WorkerError):
        launcher.reference(replace(case, seed=1), tmp_path / "scratch")
    assert phases.count("start") == 2
    launcher.close()


def test_threads_that_were_asked_for_are_in_force(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    case = case_of(relu(tmp_path / "relu.onnx"))
    case = replace(case, session=SessionConfig(intra_op_num_threads=1))
    worker = launcher.open(case, worker=0, deadline=None)
    assert (worker.opened.threads, worker.opened.threads_source) == (1, "option")


def test_inputs_and_outputs_can_be_bound(launcher: ProcessLauncher, tmp_path: Path) -> None:
    case = replace(case_of(relu(tmp_path / "relu.onnx")), io="device")
    worker = launcher.open(case, worker=0, deadline=None)
    assert worker.opened.options_in_force == {"io_binding": "cpu:0"}
    assert len(worker.ask(TimeBlock(iterations=4)).durations_ns) == 4


def test_external_data_and_odd_paths(launcher: ProcessLauncher, tmp_path: Path) -> None:
    folder = tmp_path / "mit Ümläuten und Leerzeichen"
    folder.mkdir()
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    model = onnx.load(save(tmp_path / "inline.onnx", [node], weights=[weight]))
    (folder / "data").mkdir()
    onnx.save(
        model,
        folder / "m.onnx",
        save_as_external_data=True,
        location="data/w.bin",
        size_threshold=0,
    )
    worker = launcher.open(case_of(folder / "m.onnx"), worker=0, deadline=None)
    assert len(worker.ask(TimeBlock(iterations=1)).durations_ns) == 1


def test_a_runtime_needs_nothing_of_ours(launcher: ProcessLauncher) -> None:
    """Without site-packages there is not even numpy, yet the worker answers."""
    bare = Runtime(label="bare", command=(sys.executable, "-S"), isolated=True)
    with pytest.raises(WorkerError) as caught:
        launcher.inspect(bare)
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "import")
    assert "ONNX Runtime" in failure.message


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_a_wrapper_may_print_on_the_channel(launcher: ProcessLauncher, tmp_path: Path) -> None:
    script = 'echo Welcome; printf "no line end"; exec "$0" "$@"'
    wrapped = Runtime(label="wrapped", command=("sh", "-c", script, sys.executable))
    assert launcher.inspect(wrapped).version == onnxruntime.__version__


def test_the_folder_one_is_in_hides_nothing(
    launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise SystemExit(3)")
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert launcher.inspect(Runtime()).version == onnxruntime.__version__


def test_inspect_asks_once(launcher: ProcessLauncher) -> None:
    one = launcher.inspect(Runtime())
    assert one.available_providers == tuple(onnxruntime.get_available_providers())
    assert launcher.inspect(Runtime()).pid == one.pid


def test_probing_tells_usable_from_listed(launcher: ProcessLauncher) -> None:
    if "AzureExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this build does not list Azure")
    cpu, azure, cuda = launcher.probe(
        Runtime(),
        [
            Provider(alias="cpu", name="CPUExecutionProvider"),
            Provider(alias="azure", name="AzureExecutionProvider"),
            Provider(alias="nothing", name="NothingExecutionProvider"),
        ],
    )
    assert cpu.usable
    assert cpu.reason == ""
    assert sum(cpu.executed.values()) >= 2
    assert not azure.usable
    assert "CPUExecutionProvider" in azure.reason
    assert not cuda.usable
    assert cuda.failure is not None
    assert cuda.failure.kind == "unavailable"
    assert cuda.reason.startswith("NothingExecutionProvider ")


def test_a_provider_that_is_not_there(launcher: ProcessLauncher, tmp_path: Path) -> None:
    provider = Provider(alias="openvino", name="OpenVINOExecutionProvider")
    failure = failure_of(launcher, relu(tmp_path / "m.onnx"), provider=provider)
    assert (failure.kind, failure.phase) == ("unavailable", "session")
    assert "onnxruntime-openvino" in failure.hint


def test_an_option_that_a_provider_drops(launcher: ProcessLauncher, tmp_path: Path) -> None:
    provider = Provider(alias="cpu", name="CPUExecutionProvider", options={"foo": "1"})
    failure = failure_of(launcher, relu(tmp_path / "m.onnx"), provider=provider)
    assert failure.kind == "error"
    assert "'foo'" in failure.message


def test_a_refused_shape(launcher: ProcessLauncher, tmp_path: Path) -> None:
    shape = numpy_helper.from_array(np.array([1, 2, 3], np.int64), "s")
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    path = save(tmp_path / "m.onnx", [node], shape=("B", 6), weights=[shape])
    assert launcher.open(
        replace(case_of(path), inputs=(x_input((1, 6)),)), worker=0, deadline=None
    ).opened.info.pid
    failure = failure_of(launcher, path, inputs=(x_input((2, 6)),))
    assert (failure.kind, failure.phase) == ("unsupported", "first")
    assert "requested shape:{1,2,3}" in failure.message
    assert "float32 [2, 6]" in failure.message
    assert "['B', 6]" in failure.message
    assert "Reshape" in failure.log_tail


@pytest.mark.parametrize(
    ("opsets", "ir_version", "words"),
    [
        ({"": 99}, 8, "operator set 99 of ai.onnx"),
        ({"": 13, "ai.onnx.ml": 99}, 8, "operator set 99 of ai.onnx.ml"),
        ({"": 13}, 99, "IR version 99"),
    ],
)
def test_a_model_that_is_too_new(
    launcher: ProcessLauncher,
    tmp_path: Path,
    opsets: dict[str, int],
    ir_version: int,
    words: str,
) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    path = save(tmp_path / "m.onnx", [node], opsets=opsets, ir_version=ir_version)
    failure = failure_of(launcher, path)
    assert (failure.kind, failure.phase) == ("unsupported", "session")
    assert words in failure.message
    assert "99" in failure.message


def test_an_operator_of_a_domain_that_nobody_registered(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    node = helper.make_node("Foo", ["x"], ["y"], domain="my.ops")
    failure = failure_of(launcher, save(tmp_path / "m.onnx", [node], opsets={"": 13, "my.ops": 1}))
    assert failure.kind == "unsupported"
    assert ("Foo" in failure.message, "my.ops" in failure.message) == (True, True)
    assert "--ort-custom-ops" in failure.hint


def test_a_custom_operator_library_that_is_missing(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    library = str(tmp_path / "nope.so")
    failure = failure_of(
        launcher, relu(tmp_path / "m.onnx"), session=SessionConfig(custom_ops=(library,))
    )
    assert failure.kind == "error"
    assert library in failure.message


@pytest.mark.parametrize("content", [b"just text", None])
def test_a_file_that_is_no_model(
    launcher: ProcessLauncher, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "m.onnx"
    if content is not None:
        path.write_bytes(content)
    failure = failure_of(launcher, path)
    phase = CHANGED_FILE if content is None else "session"
    assert (failure.kind, failure.phase) == ("error", phase)
    assert str(path) in failure.message
    assert "\n" not in failure.message


def test_memory_that_can_not_be_had(launcher: ProcessLauncher, tmp_path: Path) -> None:
    size = numpy_helper.from_array(np.array([1 << 43], np.int64), "size")
    nodes = [
        helper.make_node("ConstantOfShape", ["size"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["sum"]),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    failure = failure_of(
        launcher,
        save(tmp_path / "m.onnx", nodes, weights=[size]),
        session=SessionConfig(graph_optimization_level="disable"),
    )
    assert failure.kind == "out_of_memory"
    assert "Failed to allocate memory for requested buffer" in failure.message


def test_an_input_that_can_not_be_bound(launcher: ProcessLauncher, tmp_path: Path) -> None:
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["a"], values_floats=[1.0]
    )
    path = save(
        tmp_path / "m.onnx",
        [node],
        kind=TensorProto.STRING,
        opsets={"": 13, "ai.onnx.ml": 2},
    )
    failure = failure_of(launcher, path, io="device", inputs=(x_input(kind="tensor(string)"),))
    assert failure.kind == "unsupported"
    assert "--ort-io=end-to-end" in failure.hint


@pytest.mark.live
def test_empty_logs_are_removed_and_others_kept(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    launcher = ProcessLauncher(log_folder=logs)
    path = relu(tmp_path / "m.onnx")
    launcher.open(case_of(path), worker=0, deadline=None).close()
    assert list(logs.iterdir()) == []
    shape = numpy_helper.from_array(np.array([3], np.int64), "s")
    bad = save(
        tmp_path / "bad.onnx", [helper.make_node("Reshape", ["x", "s"], ["y"])], weights=[shape]
    )
    failure_of(launcher, bad)
    launcher.close()
    (kept,) = logs.iterdir()
    assert "Reshape" in kept.read_text()


@pytest.mark.live
@pytest.mark.skipif(not _DESCRIPTORS.is_dir(), reason="needs /proc")
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    path = relu(tmp_path / "m.onnx")
    ProcessLauncher().close()
    before = len(list(_DESCRIPTORS.iterdir()))
    launcher = ProcessLauncher()
    launcher.inspect(Runtime())
    for _ in range(2):
        launcher.open(case_of(path), worker=0, deadline=None).close()
        failure_of(launcher, tmp_path / "missing.onnx")
    # One that is never closed by its user.
    launcher.open(case_of(path), worker=0, deadline=None)
    launcher.close()
    assert len(list(_DESCRIPTORS.iterdir())) == before
    assert psutil.Process().children() == []


def test_a_session_entry_that_would_be_dropped_is_an_error(
    tmp_path: Path, launcher: ProcessLauncher
) -> None:
    case = case_of(relu(tmp_path / "relu.onnx"))
    wrong = replace(case, session=SessionConfig(entries={"session.foo": "1"}))
    with pytest.raises(WorkerError) as caught:
        launcher.open(wrong, worker=0, deadline=None)
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("error", "session")
    assert "'session.foo'" in failure.message
    assert "--ort-session-option" in failure.hint
    right = replace(case, session=SessionConfig(entries={"session.disable_prepacking": "1"}))
    launcher.open(right, worker=0, deadline=None).close()
