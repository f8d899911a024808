"""A reference is asked how far it differs from itself where it would condemn a case, really run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.accuracy import ReferenceSpread, SpreadTrial
from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution import standard
from pytest_ortbench.execution.own_spread import with_spread
from pytest_ortbench.launch.launcher import ProcessLauncher
from tests.execution.fakes import FakeLauncher
from tests.launch.cases import case_of, save, x_input
from tests.results_factory import make_accuracy, make_case, make_result


@pytest.fixture(name="launcher")
def _launcher() -> Iterator[ProcessLauncher]:
    with closing(ProcessLauncher()) as launcher:
        yield launcher


def weight(name: str, values: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype=np.float32), name)


def product(path: Path, factor: float = 1.0) -> Path:
    """``x`` times a matrix, times ``factor``."""
    matrix = np.random.default_rng(0).standard_normal((4, 4)) * factor
    return save(
        path, [helper.make_node("MatMul", ["x", "w"], ["y"])], weights=[weight("w", matrix)]
    )


def sine(path: Path, *factors: float) -> Path:
    """The sine of ``x`` times all factors, one after the other: as fragile as their product."""
    names = ["x", *(f"a{index}" for index in range(len(factors)))]
    nodes = [
        helper.make_node("Mul", [names[index], f"k{index}"], [names[index + 1]])
        for index in range(len(factors))
    ]
    nodes.append(helper.make_node("Sin", [names[-1]], ["y"]))
    weights = [weight(f"k{index}", factor) for index, factor in enumerate(factors)]
    return save(path, nodes, weights=weights)


def measured(case: Case, launcher: ProcessLauncher, folder: Path) -> CaseResult:
    sampling = Sampling(time_s=0.1, workers=1, timeout_s=600)
    return standard.measure(replace(case, sampling=sampling), launcher, folder / "scratch")


def planted(right: Path, wrong: Path) -> Case:
    """A case whose reference is one file, and whose session runs another: an optimiser's work."""
    case = case_of(right)
    digest = hashlib.sha256(wrong.read_bytes()).hexdigest()
    return replace(case, variant=replace(case.variant, path=str(wrong), digest=digest))


def flags(result: CaseResult) -> dict[str, str]:
    """Flags of accuracy; those of timing depend on the machine."""
    assert result.status == "measured", result.failure
    shown = ("INACCURATE", "UNJUDGED", "NONFINITE")
    return {flag.name: flag.detail for flag in result.flags if flag.name in shown}


def test_a_planted_fault_of_the_optimiser_is_found(
    tmp_path: Path, launcher: ProcessLauncher
) -> None:
    case = planted(product(tmp_path / "m.onnx"), product(tmp_path / "n.onnx", 1.01))
    result = measured(case, launcher, tmp_path)
    ((name, detail),) = flags(result).items()
    assert (name, re.findall(r"([\d.]+) dB", detail)) == ("INACCURATE", ["40.0", "60"])
    assert result.accuracy is not None
    assert result.accuracy.spread is not None
    assert all(trial.outputs for trial in result.accuracy.spread.trials)


def test_a_fragile_model_can_t_be_judged(tmp_path: Path, launcher: ProcessLauncher) -> None:
    case = planted(sine(tmp_path / "m.onnx", 1e4, 1e4), sine(tmp_path / "n.onnx", 1e8))
    found = flags(measured(case, launcher, tmp_path))
    assert list(found) == ["UNJUDGED"]
    assert ": y: SQNR " in found["UNJUDGED"]


def test_a_healthy_case_costs_no_further_worker(tmp_path: Path, launcher: ProcessLauncher) -> None:
    result = measured(case_of(product(tmp_path / "m.onnx")), launcher, tmp_path)
    assert flags(result) == {}
    assert result.accuracy is not None
    assert result.accuracy.spread is None


def test_recorded_outputs_are_not_what_the_reference_is_compared_with(
    tmp_path: Path, launcher: ProcessLauncher
) -> None:
    """They differ from the model, which is wrong; the model does not differ from itself."""
    folder = tmp_path / "data"
    folder.mkdir()
    x = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    for name, values in {"input_0": x, "output_0": x * 2}.items():
        (folder / f"{name}.pb").write_bytes(
            numpy_helper.from_array(values, name).SerializeToString()
        )
    spec = replace(x_input(), path=str(folder / "input_0.pb"))
    case = case_of(product(tmp_path / "m.onnx"), inputs=(spec,))
    outputs = (TensorInfo(name="y", type="tensor(float)", shape=(None, 4)),)
    case = replace(case, model=replace(case.model, outputs=outputs))
    result = measured(case, launcher, tmp_path)
    assert list(flags(result)) == ["INACCURATE"]


def test_every_reference_is_run_again_once(
    tmp_path: Path, launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(product(tmp_path / "m.onnx"))
    reference = launcher.reference(case, tmp_path)
    first = launcher.reference_spread(case, reference)
    monkeypatch.setattr(launcher, "_start", None)
    assert launcher.reference_spread(case, reference) is first


# -- without processes --------------------------------------------------------------------------


@pytest.mark.live
def test_a_near_case_asks_nothing(tmp_path: Path) -> None:
    launcher = FakeLauncher(lambda _case, _index: 1e6)
    result = make_result(accuracy=make_accuracy(sqnr_db=90.0))
    assert with_spread(result, result.case, launcher, tmp_path) is result
    assert launcher.spreads_asked == []


@pytest.mark.live
def test_the_spread_is_kept_with_the_accuracy(tmp_path: Path) -> None:
    launcher = FakeLauncher(lambda _case, _index: 1e6)
    launcher.spread = ReferenceSpread(trials=(SpreadTrial(name="again", reason="no"),))
    result = make_result(case=make_case(provider="openvino"), accuracy=make_accuracy(sqnr_db=30.0))
    found = with_spread(result, result.case, launcher, tmp_path)
    assert found.accuracy is not None
    assert found.accuracy.spread is launcher.spread
    assert launcher.spreads_asked == [result.case.case_id]
    assert with_spread(found, found.case, launcher, tmp_path) is found
