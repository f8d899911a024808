"""A provider that computes the wrong thing is caught, whichever way it is wrong.

The standard pass runs as it is, with real sessions in this process whose outputs a stand-in spoils.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.convert.double import to_float64
from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, InputSpec, Provider, Sampling, SessionConfig
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.model import Model, Reference, Variant
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.passes import carry_out
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.reference import reference_case
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.passes.task.worker import scoring as task
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.schema.case_questions import Open
from pytest_ortbench.schema.question import CaseQuestion
from pytest_ortbench.worker import accuracy, measured, profiling
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.reference import recorded_outputs, write_recorded
from pytest_ortbench.worker.spread import spread_of
from pytest_ortbench.worker.standard import open_case
from pytest_ortbench.worker.state import WorkerState
from tests.results_factory import make_run
from tests.summarised import answers_of
from tests.worker.asking import ask
from tests.worker.graphs import serialised, value, weights
from tests.worker.sessions import CPU, Spoiled, cpu_session

A = TypeVar("A")

pytestmark = pytest.mark.live
Spoil = Callable[[int, list[Any]], list[Any]]
FLOAT = TensorProto.FLOAT


class Spoiling(Spoiled):
    """Also answers what is asked of the measured session and of the profiled one."""

    def get_providers(self) -> list[str]:
        return list(self._session.get_providers())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class InThisProcess:
    """A worker that is this process."""

    def __init__(self, case: Case) -> None:
        state = WorkerState(lambda _: None)
        self.opened = open_case(Open(case=case), state)
        measured = state.measured
        assert isinstance(measured, MeasuredCase)
        self._measured = measured

    def ask(self, question: CaseQuestion[A]) -> A:
        return ask(self._measured, question)

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def close(self) -> None:
        pass


class InProcess:
    """A launcher that measures in this process."""

    def open(self, case: Case, *, worker: int, deadline: float | None) -> InThisProcess:
        del worker, deadline
        return InThisProcess(case)

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def written_by_reference(self, case: Case, kind: str, question: object) -> Path:
        del question
        assert kind == "scores"
        assert self.folder is not None
        assert case.dataset is not None
        path = self.folder / "scores.npz"
        session = cpu_session(Path(case.model.path).read_bytes(), optimise=False)
        task.write_scores(path, task.score(session, case.dataset, case.batch, "as it is"))
        return path

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> ReferenceSpread:
        right = reference_case(case)
        model = Path(right.model.path)
        own = reference.with_name("own.npz")  # where it was recorded, it is no run of the model
        session = cpu_session(model.read_bytes(), optimise=False)
        accuracy.write_reference(own, session=session, specs=right.inputs, seed=0)
        return spread_of(
            own,
            lambda _: cpu_session(model.read_bytes(), optimise=False),
            lambda: cpu_session(to_float64(model), optimise=False),
            magnitudes=magnitudes,
        )

    def reference(self, case: Case, folder: Path) -> Path:
        case = reference_case(case)
        path = folder / "reference.npz"
        recorded = () if case.model.reference else recorded_outputs(case.inputs, case.model.outputs)
        if recorded:
            names = [output.name for output in case.model.outputs]
            write_recorded(path, recorded, case.inputs, names, seed=0)
            return path
        session = cpu_session(Path(case.model.path).read_bytes(), optimise=False)
        accuracy.write_reference(path, session=session, specs=case.inputs, seed=0)
        return path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CaseResult]:
    """Measure a serialised model on a session whose outputs are spoilt."""

    def measured_with(
        content: bytes,
        spoil: Spoil,
        dataset: Dataset | None = None,
        change: Callable[[Case], Case] = lambda case: case,
    ) -> CaseResult:
        path = tmp_path / "m.onnx"
        path.write_bytes(content)
        create = measured.create

        def spoilt(*asked: Any) -> tuple[Any, int]:
            session, took = create(*asked)
            return Spoiling(session, spoil), took

        for module in (measured, profiling):
            monkeypatch.setattr(module, "create", spoilt)
        case = case_of(read_model(path, name="m", source="file"))
        case = change(replace(case, dataset=dataset))
        # As much of a launcher as is asked for.
        launcher: Any = InProcess(tmp_path)
        result = measure(case, launcher, tmp_path)
        return result if dataset is None else carry_out("task", result, Means(launcher=launcher))

    return measured_with


def case_of(model: Model) -> Case:
    inputs: tuple[InputSpec, ...] = resolve_inputs(model, batch=4, dims={})
    return Case(
        model=model,
        variant=Variant(
            precision="native", path=model.path, digest=model.digest, size_bytes=model.size_bytes
        ),
        provider=Provider(alias="cpu", name=CPU),
        session=SessionConfig(intra_op_num_threads=1),
        batch=4,
        inputs=inputs,
        sampling=Sampling(time_s=0.01, workers=1, timeout_s=600),
    )


def classifier(seed: int = 0) -> bytes:
    return serialised(
        [helper.make_node("MatMul", ["x", "w"], ["logits"], name="mm")],
        [value("x", FLOAT, ["N", 16])],
        [value("logits", FLOAT, ["N", 10])],
        {"w": weights(16, 10, seed=seed)},
    )


def quantised(*, to_float: bool) -> bytes:
    """Input and output of eight bits; the output as such, or back in float."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="dq"),
        helper.make_node("MatMul", ["d", "w"], ["m"], name="mm"),
        helper.make_node("QuantizeLinear", ["m", "t", "z"], ["y"], name="q2"),
    ]
    if to_float:
        nodes.append(helper.make_node("DequantizeLinear", ["y", "t", "z"], ["yf"], name="dq2"))
    kind, name = (FLOAT, "yf") if to_float else (TensorProto.UINT8, "y")
    return serialised(
        nodes,
        [value("x", FLOAT, ["N", 16])],
        [value(name, kind, ["N", 16])],
        {
            "w": weights(16, 16),
            "s": np.float32(8 / 255),
            "t": np.float32(30 / 255),
            "z": np.uint8(128),
        },
    )


def flags(result: CaseResult) -> set[str]:
    return {flag.name for flag in result.flags}


def test_a_right_one_is_not_flagged(run: Callable[..., CaseResult]) -> None:
    result = run(classifier(), lambda _, outputs: outputs)
    assert result.status == "measured"
    assert not flags(result) & {"INACCURATE", "NONFINITE"}


@pytest.mark.parametrize(
    ("spoil", "flag", "says"),
    [
        (
            lambda _, outputs: [outputs[0][:, ::-1].copy()],
            "INACCURATE",
            "logits: SQNR ",
        ),
        (lambda _, outputs: [np.zeros_like(outputs[0])], "INACCURATE", "logits: SQNR 0.0 dB"),
        (
            lambda call, outputs: [outputs[0] * np.float32(np.nan if call else 1)],
            "NONFINITE",
            "40 values in the",
        ),
        (
            lambda call, outputs: [outputs[0] * np.float32(np.nan if call else 1)],
            "INACCURATE",
            "logits: 320 NaN",
        ),
        # Right at first, wrong later on: the runs of the loop itself differ.
        (
            lambda call, outputs: [outputs[0] * np.float32(1 if call < 4 else 0.5)],
            "INACCURATE",
            "outputs of the ",
        ),
    ],
    ids=["permuted", "zeros", "NaN seen in the loop", "NaN seen by the comparison", "later"],
)
def test_a_wrong_one_is_flagged_and_never_ranked(
    run: Callable[..., CaseResult], spoil: Spoil, flag: str, says: str
) -> None:
    result = run(classifier(), spoil)
    # Its latency stays: it is a fact too.
    assert result.status == "measured"
    (found,) = [found for found in result.flags if found.name == flag]
    assert says in found.detail
    (answer,) = answers_of(make_run([result]))
    assert answer.ranked == 0
    assert answer.fastest == ()


@pytest.mark.parametrize("to_float", [False, True], ids=["eight bits", "float"])
def test_a_shift_of_one_quantisation_step_is_not_flagged(
    run: Callable[..., CaseResult], to_float: bool
) -> None:
    def shifted(_: int, outputs: list[Any]) -> list[Any]:
        if to_float:
            return [outputs[0] + np.float32(30 / 255)]
        return [np.where(outputs[0] < 255, outputs[0] + np.uint8(1), outputs[0])]

    result = run(quantised(to_float=to_float), shifted)
    assert result.accuracy is not None
    assert not result.accuracy.outputs[0].exact
    assert "INACCURATE" not in flags(result)


# -- against a named reference, and against recorded outputs -------------------------------------

WRONG = {
    "permuted": (lambda _, outputs: [outputs[0][:, ::-1].copy()], "INACCURATE"),
    "zeros": (lambda _, outputs: [np.zeros_like(outputs[0])], "INACCURATE"),
    "NaN from the second call on": (
        lambda call, outputs: [outputs[0] * np.float32(np.nan if call else 1)],
        "NONFINITE",
    ),
}


@pytest.fixture(params=["named reference", "recorded outputs"])
def against(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Any]:
    """How a case is changed to be compared with the classifier of this seed, in either way."""

    def named(seed: int) -> Callable[[Case], Case]:
        path = tmp_path / "right.onnx"
        path.write_bytes(classifier(seed))
        right = read_model(path, name="right", source="file")
        reference = Reference(
            name="right",
            path=right.path,
            digest=right.digest,
            input_types={info.name: info.type for info in right.inputs},
        )
        return lambda case: replace(case, model=replace(case.model, reference=reference))

    def recorded(seed: int) -> Callable[[Case], Case]:
        x = np.random.default_rng(5).standard_normal((4, 16)).astype(np.float32)
        (y,) = cpu_session(classifier(seed)).run(None, {"x": x})
        for name, array in (("input_0", x), ("output_0", y)):
            (tmp_path / f"{name}.pb").write_bytes(
                numpy_helper.from_array(array).SerializeToString()
            )
        path = str(tmp_path / "input_0.pb")
        return lambda case: replace(
            case, inputs=tuple(replace(spec, path=path) for spec in case.inputs)
        )

    return named if request.param == "named reference" else recorded


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_caught_against_whatever_is_right(
    run: Callable[..., CaseResult], against: Callable[[int], Any], wrong: str
) -> None:
    spoil, flag = WRONG[wrong]
    result = run(classifier(), spoil, change=against(0))
    assert result.status == "measured"
    assert flag in flags(result)
    (answer,) = answers_of(make_run([result]))
    assert answer.ranked == 0


def test_what_is_right_is_what_was_named_and_not_the_file_itself(
    run: Callable[..., CaseResult], against: Callable[[int], Any]
) -> None:
    def right(_: int, outputs: list[Any]) -> list[Any]:
        return outputs

    same, other = (run(classifier(), right, change=against(seed)) for seed in (0, 1))
    assert not flags(same) & {"INACCURATE", "NONFINITE"}
    assert "INACCURATE" in flags(other)


# -- with labels ---------------------------------------------------------------------------------


@pytest.fixture
def labelled(tmp_path: Path) -> Callable[..., Dataset]:
    """Samples, labelled as the model itself answers; its last class is never right."""

    def save(content: bytes) -> Dataset:
        x = np.random.default_rng(0).standard_normal((600, 16)).astype(np.float32)
        (found,) = cpu_session(content).run(None, {"x": x})
        np.savez(tmp_path / "data.npz", x=x, labels=found.argmax(axis=1))
        return Dataset(path=str(tmp_path / "data.npz"))

    return save


def half_wrong_later(call: int, outputs: list[Any]) -> list[Any]:
    return [outputs[0] * np.float32(np.nan if call else 1)]


@pytest.mark.parametrize(
    ("spoil", "right"),
    [
        (lambda _, outputs: [outputs[0][:, ::-1].copy()], range(60)),
        (lambda _, outputs: [np.zeros_like(outputs[0])], range(120)),
        (half_wrong_later, range(1)),
    ],
    ids=["permuted", "zeros", "NaN from the second call on"],
)
def test_labels_catch_a_wrong_one_too(
    run: Callable[..., CaseResult],
    labelled: Callable[..., Dataset],
    spoil: Spoil,
    right: range,
) -> None:
    result = run(classifier(), spoil, labelled(classifier()))
    assert result.task is not None
    assert result.task.reason == ""
    assert (result.task.samples, result.task.reference_sum) == (600, 600.0)
    assert int(result.task.score_sum) in right
    (found,) = [found for found in result.flags if found.name == "INACCURATE"]
    assert ("600 samples" in found.detail, "99 %" in found.detail) == (True, True)


def test_labels_do_not_mind_a_shift_of_one_quantisation_step(
    run: Callable[..., CaseResult], labelled: Callable[..., Dataset]
) -> None:
    def shifted(_: int, outputs: list[Any]) -> list[Any]:
        return [outputs[0] + np.float32(30 / 255)]

    result = run(quantised(to_float=True), shifted, labelled(quantised(to_float=True)))
    assert result.task is not None
    assert (result.task.score_sum, result.task.worse) == (600.0, 0)
    assert "INACCURATE" not in flags(result)
