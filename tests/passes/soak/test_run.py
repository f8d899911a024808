"""The soak pass: which shapes it goes through, and verdicts on real sessions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.memory_growth import Growth
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Case, Runtime, Sampling
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.numbers import growth
from pytest_ortbench.passes.soak.run import MOST_SHAPES, measure, soak_shapes
from tests.launch.cases import case_of, relu, stand_in
from tests.launch.test_memory_of_cases import conv
from tests.results_factory import make_result


def varied(case: Case, dims: dict[str, tuple[int, ...]], *, seconds: float = 6.0) -> Case:
    """The case with height and width in its interface, soaked over these sizes."""
    info = TensorInfo(name="x", type="tensor(float)", shape=(1, 1, "H", "W"))
    model = replace(case.model, inputs=(info,), default_dims={"H": 8, "W": 8})
    sampling = Sampling(time_s=0.2, workers=1, timeout_s=600, soak_s=seconds, soak_dims=dims)
    return replace(case, model=model, sampling=sampling)


def test_shapes_are_all_combinations_in_no_order_of_size(tmp_path: Path) -> None:
    case = varied(case_of(conv(tmp_path / "m.onnx")), {"H": (1, 2, 3, 4), "W": (5, 6)})
    shapes = [shape[0].shape for shape in soak_shapes(case)]
    assert sorted(shapes) == [(1, 1, h, w) for h in (1, 2, 3, 4) for w in (5, 6)]
    assert shapes != sorted(shapes)
    assert shapes == [shape[0].shape for shape in soak_shapes(case)]


def test_of_too_many_combinations_some_are_drawn(tmp_path: Path) -> None:
    many = tuple(range(1, 101))
    case = varied(case_of(conv(tmp_path / "m.onnx")), {"H": many, "W": many})
    shapes = {shape[0].shape for shape in soak_shapes(case)}
    assert len(shapes) == MOST_SHAPES
    assert len({shape[2] for shape in shapes}) > 50


def test_without_sizes_that_vary_there_is_the_cases_own_shape_only(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    assert list(soak_shapes(case)) == []
    other = replace(case, sampling=replace(case.sampling, soak_dims={"seq": (1, 2)}))
    assert list(soak_shapes(other)) == []


def test_sizes_that_the_model_refuses_are_a_reason(tmp_path: Path) -> None:
    case = varied(case_of(conv(tmp_path / "m.onnx")), {"H": (10**9,)})
    with closing(ProcessLauncher()) as launcher:
        found = measure(make_result(case=case), Means(launcher=launcher))
    assert found == Soak(reason="the model accepts none of the sizes of H (--ort-soak-dims)")


def test_a_recorded_graph_is_not_soaked_over_shapes_that_it_would_not_run(tmp_path: Path) -> None:
    case = varied(case_of(conv(tmp_path / "m.onnx")), {"H": (1, 2)})
    provider = replace(case.provider, options={"enable_cuda_graph": "1"})
    with closing(ProcessLauncher()) as launcher:
        found = measure(
            make_result(case=replace(case, provider=provider)), Means(launcher=launcher)
        )
    assert found == Soak(reason="a recorded graph replays one shape only (--ort-soak-dims)")


@pytest.mark.live
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_a_healthy_session_over_300_shapes_is_not_accused(tmp_path: Path) -> None:
    case = varied(
        case_of(conv(tmp_path / "m.onnx")), {"H": tuple(range(1, 21)), "W": tuple(range(1, 16))}
    )
    case = replace(case, inputs=next(iter(soak_shapes(case))))
    with closing(ProcessLauncher()) as launcher:
        soak = measure(make_result(case=case), Means(launcher=launcher))
    assert soak.shapes == 300
    # Every shape came three times, or the soak says nothing of it.
    assert soak.inferences >= 900
    found = growth(soak)
    assert isinstance(found, Growth), found
    # Too small a growth for a verdict is no accusation.
    assert found.leaks is not True


@pytest.mark.live
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_a_session_that_keeps_its_outputs_is_found(tmp_path: Path) -> None:
    """A stand-in of ONNX Runtime keeps 16 kB of every inference."""
    runtime: Runtime = stand_in(tmp_path, "keep@run")
    case = case_of(relu(tmp_path / "m.onnx"), runtime=runtime)
    case = replace(case, sampling=Sampling(time_s=0.2, workers=1, timeout_s=600, soak_s=4.0))
    with closing(ProcessLauncher()) as launcher:
        soak = measure(make_result(case=case), Means(launcher=launcher))
    found = growth(soak)
    assert isinstance(found, Growth), found
    assert found.leaks
    assert found.per_thousand == pytest.approx(16_384_000, rel=0.1)
    result = replace(make_result(case=case), soak=soak)
    limits = [parse_limit(text, place="here") for text in ("leaks <= 0", "memory_growth <= 1 MB")]
    outcomes = check_limits(limits, summarise(result))
    assert [outcome.judgement.is_good for outcome in outcomes] == [False, False]


def test_a_soak_that_says_nothing_breaks_a_limit_on_it() -> None:
    limit = parse_limit("leaks <= 0", place="here")
    for soak, reason in (
        (None, "no soak was requested (--ort-soak)"),
        (Soak(seconds=1, at=(1, 2), resident_bytes=(1, 1)), "2 readings in 1 s, but 64 are needed"),
    ):
        [outcome] = check_limits([limit], summarise(replace(make_result(), soak=soak)))
        assert outcome.judgement.is_unjudged
        assert reason in outcome.judgement.reason


def test_a_model_without_symbols_has_no_shapes() -> None:
    model = Model(name="m", path="/m.onnx", source="file", digest="aa", size_bytes=1)
    case = replace(make_result().case, model=model)
    assert list(soak_shapes(case)) == []
