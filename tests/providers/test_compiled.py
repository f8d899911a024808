"""Compiled models of OpenVINO: made, kept, measured, and refused where they are foreign."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.default_retry import DefaultRetry
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.request import PlanRequest
from tests.providers import cases
from tests.providers.cases import QUICK, Measured
from tests.providers.conftest import OPENVINO

pytestmark = pytest.mark.needs("network")

Distribution = Callable[[str], Runtime]
ON_OPENVINO = "OpenVINOExecutionProvider"


@pytest.fixture
def prepared(launcher: ProcessLauncher, tmp_path: Path) -> Callable[[Path, Runtime], Case]:
    """Plan a compiled case and have it compiled."""

    def prepare(path: Path, runtime: Runtime) -> Case:
        planner = Planner(launcher, path.parent, runtimes=[runtime], notify=lambda _: None)
        request = PlanRequest(
            models=(str(path),), providers=("openvino",), compiled=("on",), sampling=QUICK
        )
        [planned] = planner.plan(request).entries
        assert planned.refusal is None
        variants = Variants(launcher=launcher, folder=tmp_path / "cache" / "variants")
        return DefaultRetry(launcher=launcher).prepare(planned, variants)

    return prepare


@pytest.fixture
def run(launcher: ProcessLauncher, tmp_path: Path, here: Runtime) -> Callable[[Case], CaseResult]:
    return lambda case: measure(case, launcher, tmp_path / "scratch", reference_runtime=here)


def test_a_compiled_model_runs_in_a_session_that_may_not_compile(
    plugged_in: Runtime,
    prepared: Callable[[Path, Runtime], Case],
    run: Callable[[Case], CaseResult],
    tmp_path: Path,
) -> None:
    path = cases.mlp(tmp_path / "mlp.onnx")
    case = prepared(path, plugged_in)
    made = case.variant.compilation
    assert made is not None
    assert (made.compiled_nodes, made.other_nodes) == (1, 0)
    assert made.compile_ns > 0
    [part] = read_model(Path(case.variant.path), name="made", source="file").compiled
    assert part.provider == ON_OPENVINO
    result = run(case)
    assert result.status == "measured"
    assert result.placement is not None
    assert result.placement.executed == {ON_OPENVINO: 1}
    assert result.accuracy is not None
    assert result.accuracy.reason == ""
    # The plain file in the same session is refused: what ran was the compiled one.
    variant = replace(
        case.variant, path=str(path), digest=made.source_digest, size_bytes=made.source_bytes,
        external_files=(), compilation=None,
    )  # fmt: skip
    refused = run(replace(case, variant=variant))
    assert refused.failure is not None
    assert refused.failure.phase == "session"
    assert refused.measurements == ()


def test_it_is_compiled_once(
    plugged_in: Runtime, prepared: Callable[[Path, Runtime], Case], tmp_path: Path
) -> None:
    path = cases.mlp(tmp_path / "mlp.onnx")
    first = prepared(path, plugged_in).variant
    again = prepared(path, plugged_in).variant
    assert first == again
    folder = Path(first.path).parent
    (folder / Path(first.path).name).write_bytes(b"stale")
    made = prepared(path, plugged_in).variant
    assert made.path == first.path
    assert made.compilation is not None
    assert read_model(Path(made.path), name="made", source="file").compiled


@pytest.fixture
def own(plugged_in: Runtime, prepared: Callable[[Path, Runtime], Case], tmp_path: Path) -> Path:
    """A compiled file that a user has."""
    case = prepared(cases.mlp(tmp_path / "mlp.onnx"), plugged_in)
    return Path(shutil.copy(case.variant.path, tmp_path / "own.onnx"))


def test_a_user_s_own_compiled_file_is_measured_without_a_reference(
    plugged_in: Runtime, measure: Measured, own: Path
) -> None:
    result = measure(own, "openvino", plugged_in)
    assert result.status == "measured"
    assert result.placement is not None
    assert result.placement.executed == {ON_OPENVINO: 1}
    assert result.accuracy is not None
    assert result.accuracy.reason
    assert result.accuracy.outputs == ()


def test_another_provider_is_refused_it(measure: Measured, own: Path, here: Runtime) -> None:
    result = measure(own, "cpu", here)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.phase) == ("unsupported", "session")


def test_another_version_of_the_provider_refuses_it(
    distribution: Distribution, measure: Measured, own: Path
) -> None:
    result = measure(own, "openvino", distribution(OPENVINO))
    assert result.failure is not None
    assert (result.failure.kind, result.failure.phase) == ("unsupported", "session")
    assert result.measurements == ()


def test_a_package_that_does_not_load_what_it_compiles_says_so(
    distribution: Distribution,
    prepared: Callable[[Path, Runtime], Case],
    run: Callable[[Case], CaseResult],
    tmp_path: Path,
) -> None:
    case = prepared(cases.mlp(tmp_path / "mlp.onnx"), distribution(OPENVINO))
    result = run(case)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.phase) == ("unsupported", "session")
    assert result.measurements == ()


def test_a_model_that_is_left_whole_to_the_cpu_has_nothing_to_compile(
    plugged_in: Runtime, prepared: Callable[[Path, Runtime], Case], tmp_path: Path
) -> None:
    path = cases.lowercase_letters(tmp_path / "text.onnx")
    with pytest.raises(WorkerError) as caught:
        prepared(path, plugged_in)
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("unsupported", "compile")
