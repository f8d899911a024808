"""What is right: outputs of the source model on the CPU without optimisation.

Outputs that somebody recorded beside the inputs (``output_0.pb``, … of ONNX test data) go before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, InputSpec, Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.model_spec import ORT
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.schema.model_questions import MeasureSpread, WriteReference
from pytest_ortbench.worker.accuracy import write_reference
from pytest_ortbench.worker.called import Session
from pytest_ortbench.worker.generation.held_rows import with_held_rows
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.sample_file import Sample, SampleWriter
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.state import WorkerState
from pytest_ortbench.worker.tensor_proto import read_tensor

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def write_reference_outputs(question: WriteReference, state: WorkerState) -> None:
    """Write feeds and reference outputs, those that were recorded beside the inputs if any."""
    state.import_runtime()
    state.enter("reference")
    case, path = question.case, Path(question.path)
    if case.expected:
        write_expected(path, case)
        return
    # A model that is named as the reference goes before what lies beside the inputs.
    recorded = () if case.model.reference else recorded_outputs(case.inputs, case.model.outputs)
    if recorded:
        names = [info.name for info in case.model.outputs]
        write_recorded(path, recorded, case.inputs, names, seed=case.seed)
        return
    write_reference(
        path,
        session=_comparable(case),
        specs=case.inputs,
        seed=case.seed,
        label=reference_label(case),
    )


def measure_spread(question: MeasureSpread, state: WorkerState) -> ReferenceSpread:
    """Run the reference again in other ways, and say how far its outputs differ from the first."""
    from pytest_ortbench.worker.spread import spread_of  # seldom needed

    state.import_runtime()
    state.enter("reference")
    case, path = question.case, Path(question.reference)
    if case.expected or (
        not case.model.reference and recorded_outputs(case.inputs, case.model.outputs)
    ):
        # What was recorded elsewhere may differ for other reasons than those looked for here.
        path = path.with_name(f"{path.name}.own")
        write_reference(path, session=_comparable(case), specs=case.inputs, seed=case.seed)
    return spread_of(
        path,
        lambda threads: _comparable(case, threads),
        lambda: _wide_session(case),
        magnitudes=question.magnitudes,
    )


def write_expected(path: Path, case: Case) -> None:
    """Store the inputs with the outputs that the user expects of them, as one input set.

    Args:
        path: The file to make; it appears when it is complete.
        case: Holds both.

    Raises:
        WorkerError: if a file can't be read.
    """
    names = tuple(spec.name for spec in case.expected)
    label = f"outputs expected in {Path(case.expected[0].path).name}"
    with SampleWriter(path, label, names) as writer:
        feeds = make_feeds(case.inputs, seed=case.seed)
        outputs = list(make_feeds(case.expected, seed=case.seed).values())
        writer.add(Sample(magnitude=1.0, feeds=feeds, outputs=outputs))


def recorded_outputs(
    inputs: Sequence[InputSpec], outputs: Sequence[TensorInfo]
) -> tuple[Path, ...]:
    """Return the recorded files of all outputs, if every input is of one such folder; else none.

    A folder that holds some of the outputs only is no reference.
    """
    folders = {Path(spec.path).parent for spec in inputs if spec.path.lower().endswith(".pb")}
    if len(folders) != 1 or not all(spec.path for spec in inputs):
        return ()
    folder = folders.pop()
    files = tuple(folder / f"output_{number}.pb" for number in range(len(outputs)))
    tensors = all(info.type.startswith("tensor(") for info in outputs)
    return files if files and tensors and all(file.is_file() for file in files) else ()


def write_recorded(
    path: Path,
    files: Sequence[Path],
    specs: Sequence[InputSpec],
    names: Sequence[str],
    *,
    seed: int,
) -> None:
    """Store the inputs with the recorded outputs, as the reference of one input set.

    Args:
        path: The file to make; it appears when it is complete.
        files: From :func:`recorded_outputs`.
        specs: The inputs.
        names: Names of the outputs in order.
        seed: Of inputs that no file holds.

    Raises:
        WorkerError: if a file can't be read.
    """
    with SampleWriter(path, f"outputs recorded in {files[0].parent.name}", tuple(names)) as writer:
        feeds = make_feeds(specs, seed=seed)
        outputs: list[object] = [read_tensor(file) for file in files]
        writer.add(Sample(magnitude=1.0, feeds=feeds, outputs=outputs))


def reference_session(
    case: Case, threads: int | None = None, model: str | bytes = b""
) -> InferenceSession:
    """Return a session of the reference, on the CPU without optimisation."""
    config = SessionConfig(graph_optimization_level="disable", custom_ops=case.session.custom_ops)
    session, _ = create(
        model or case.model.path,
        Provider(alias="cpu", name=CPU),
        session_options(config, threads=allowance().threads if threads is None else threads),
    )
    return session


def _comparable(case: Case, threads: int | None = None, model: str | bytes = b"") -> Session:
    """Return the reference, with outputs as those of cases are compared."""
    return with_held_rows(reference_session(case, threads, model), case.model.decoder)


def _wide_session(case: Case) -> Session:
    """Return the reference with every float32 number widened to float64."""
    from pytest_ortbench.convert.double import to_float64  # needs onnx

    return _comparable(case, model=to_float64(Path(case.model.path)))


def reference_label(case: Case) -> str:
    """Name the reference of a case, for people."""
    # A file of ONNX Runtime's own format holds the optimised graph already.
    is_optimised = case.model.path.lower().endswith(ORT)
    how = "optimised when it was saved" if is_optimised else "no optimisation"
    return f"{case.model.name} as it is on {CPU}, {how}"
