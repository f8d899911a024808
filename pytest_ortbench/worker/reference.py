"""What is right: the source model on the CPU without optimisation, its outputs and its scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.schema.model_questions import MeasureSpread, WriteReference
from pytest_ortbench.schema.pass_questions import WriteScores
from pytest_ortbench.worker.accuracy import write_reference
from pytest_ortbench.worker.recorded import recorded_outputs, write_recorded
from pytest_ortbench.worker.session import CPU, create, session_options
from pytest_ortbench.worker.state import WorkerState

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def write(question: WriteReference, state: WorkerState) -> None:
    """Write feeds and reference outputs, those that were recorded beside the inputs if any."""
    state.import_runtime()
    state.enter("reference")
    case, path = question.case, Path(question.path)
    # A model that is named as the reference goes before what lies beside the inputs.
    recorded = () if case.model.reference else recorded_outputs(case.inputs, case.model.outputs)
    if recorded:
        names = [info.name for info in case.model.outputs]
        write_recorded(path, recorded, case.inputs, names, seed=case.seed)
        return
    write_reference(
        path, session=_session(case), specs=case.inputs, seed=case.seed, label=_label(case)
    )


def measure_spread(question: MeasureSpread, state: WorkerState) -> ReferenceSpread:
    """Run the reference again in other ways, and say how far its outputs differ from the first."""
    from pytest_ortbench.worker.spread import spread_of  # seldom needed

    state.import_runtime()
    state.enter("reference")
    case, path = question.case, Path(question.reference)
    if not case.model.reference and recorded_outputs(case.inputs, case.model.outputs):
        # What was recorded elsewhere may differ for other reasons than those looked for here.
        path = path.with_name(f"{path.name}.own")
        write_reference(path, session=_session(case), specs=case.inputs, seed=case.seed)
    return spread_of(
        path,
        lambda threads: _session(case, threads),
        lambda: _wide_session(case),
        magnitudes=question.magnitudes,
    )


def write_reference_scores(question: WriteScores, state: WorkerState) -> None:
    """Run labelled data through the reference, and write its scores."""
    from pytest_ortbench.worker.task import score, write_scores  # seldom needed

    state.import_runtime()
    state.enter("task")
    case = question.case
    scores = score(_session(case), question.dataset, case.batch, _label(case))
    write_scores(Path(question.path), scores)


def _session(case: Case, threads: int | None = None, model: str | bytes = b"") -> InferenceSession:
    config = SessionConfig(graph_optimization_level="disable", custom_ops=case.session.custom_ops)
    session, _ = create(
        model or case.model.path,
        Provider(alias="cpu", name=CPU),
        session_options(config, threads=allowance().threads if threads is None else threads),
    )
    return session


def _wide_session(case: Case) -> InferenceSession:
    """Return the reference with every float32 number widened to float64."""
    from pytest_ortbench.convert.double import to_float64  # needs onnx

    return _session(case, model=to_float64(Path(case.model.path)))


def _label(case: Case) -> str:
    # A file of ONNX Runtime's own format holds the optimised graph already.
    how = "optimised when it was saved" if case.model.path.endswith(".ort") else "no optimisation"
    return f"{case.model.name} as it is on {CPU}, {how}"
