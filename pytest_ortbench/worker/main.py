"""The worker's side of the conversation: read a question, answer it, until the host hangs up."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.schema.protocol import (
    Answer,
    CheckOutputs,
    Close,
    CompareNodes,
    CompareOutputs,
    CompareSides,
    Convert,
    DescribeModel,
    Done,
    FetchChunk,
    ImportRuntime,
    Inspect,
    LoadStages,
    MeasureEnergy,
    MeasureSpread,
    Open,
    PhaseEntered,
    ProbeProvider,
    ProfileOperators,
    ProfilePlacement,
    PutUnderLoad,
    Question,
    ReadMemory,
    Refusal,
    RunFrames,
    ScoreTask,
    SoakFor,
    StartUp,
    StoreChunk,
    TimeBlock,
    WarmUpFor,
    WriteOutputs,
    WriteOwnScores,
    WriteReference,
    WriteScores,
    pack,
    unpack_question,
)
from pytest_ortbench.schema.wire import decode_frame, encode_frame
from pytest_ortbench.worker import runtime
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.orphaned import end_with_host
from pytest_ortbench.worker.probe import probe
from pytest_ortbench.worker.session import CPU, FellBack, create, session_options

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from pytest_ortbench.worker.staging import Staging


def serve(incoming: BinaryIO, outgoing: BinaryIO, token: str) -> None:
    """Answer questions until the host closes the channel or says :class:`Close`.

    Args:
        incoming: Where frames come from.
        outgoing: Where frames go, unbuffered.
        token: What every frame starts with.
    """
    conversation = Conversation(outgoing, token)
    end_with_host(incoming, conversation.end)
    for line in incoming:
        ours, plain = decode_frame(token, line)
        if not ours:
            continue
        question = unpack_question(plain)
        if isinstance(question, Close):
            break
        conversation.answer(question)
    conversation.end()
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the destructors of native libraries: they take time, and some crash in them.
    os._exit(0)


class Conversation:
    """What the worker holds between two questions.

    Args:
        outgoing: Where frames go, unbuffered.
        token: What every frame starts with.
    """

    def __init__(self, outgoing: BinaryIO, token: str) -> None:
        self._outgoing = outgoing
        self._token = token
        self._phase = "start"
        self._measured: MeasuredCase | None = None
        self._staging: Staging | None = None

    def end(self) -> None:
        """Leave nothing behind; safe to repeat."""
        if self._staging is not None:
            self._staging.remove()

    def answer(self, question: Question) -> None:
        """Answer one question, with a refusal if anything is raised on the way."""
        try:
            answer = self._find_answer(question)
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            answer = self._refusal(error)
        self._send(answer)

    def _enter(self, phase: str) -> None:
        # Blocks come by the dozen; only changes are news.
        if phase != self._phase:
            self._phase = phase
            self._send(PhaseEntered(phase=phase))

    def _send(self, message: Answer) -> None:
        frame = memoryview(encode_frame(self._token, pack(message)))
        while frame:
            frame = frame[self._outgoing.write(frame) :]

    def _find_answer(self, question: Question) -> Answer:
        match question:
            case Inspect():
                return self._inspect(question)
            case StoreChunk():
                self._enter("files")
                return self._files().store(question)
            case FetchChunk():
                return self._files().fetch(question)
            case ProbeProvider():
                return self._probe(question.provider)
            case WriteReference():
                return self._write_reference(question.case, question.path)
            case WriteScores():
                return self._write_scores(question)
            case DescribeModel():
                return self._describe(question)
            case Convert():
                return self._convert(question)
            case CompareNodes():
                return self._compare_nodes(question)
            case StartUp():
                from pytest_ortbench.worker.start_up import start_up  # most workers never need it

                self._check_entries(question.case)
                return start_up(question, self._enter)
            case MeasureSpread():
                return self._measure_spread(question)
            case ImportRuntime():
                self._import()
                return Done()
            case Open():
                unconfirmed = self._check_entries(question.case)
                self._measured = MeasuredCase(question.case, self._enter, engines=question.engines)
                opened = self._measured.open()
                return replace(opened, unconfirmed={**unconfirmed, **opened.unconfirmed})
        measured = self._measured
        if measured is None:
            raise RuntimeError(f"{type(question).__name__} before any case was opened")
        match question:
            case WarmUpFor():
                return measured.warm(question.budget_s)
            case TimeBlock():
                return measured.block(question.iterations)
            case CheckOutputs():
                return measured.check(question.run)
            case ReadMemory():
                return measured.memory()
            case ProfilePlacement():
                return measured.placement()
            case CompareOutputs():
                return measured.accuracy(Path(question.reference))
            case WriteOutputs() | CompareSides() | WriteOwnScores():
                from pytest_ortbench.worker.sides import answer_side  # most workers never need it

                self._enter("task" if isinstance(question, WriteOwnScores) else "accuracy")
                return answer_side(measured, question)
            case MeasureEnergy():
                return measured.energy(question.budget_s)
            case ProfileOperators():
                return measured.operators(Path(question.keep) if question.keep else None)
            case SoakFor():
                return measured.soak(question.seconds, question.shapes)
            case PutUnderLoad():
                return measured.load(question)
            case LoadStages():
                return measured.load_stages(Path(question.path), question.budget_s)
            case RunFrames():
                return measured.frames(question.count, overlapped=question.overlapped)
            case ScoreTask():
                return measured.task(question.dataset, question.reference)
        raise RuntimeError(f"no answer to {type(question).__name__}")

    def _import(self) -> None:
        self._enter("import")
        runtime.load()

    def _check_entries(self, case: Case) -> dict[str, str]:
        """Before anything is measured, since looking into the library takes memory."""
        if not case.session.entries:
            return {}
        from pytest_ortbench.worker.session_entries import unconfirmed_entries  # seldom needed

        self._import()
        self._enter("session")
        return unconfirmed_entries(case)

    def _inspect(self, question: Inspect) -> Answer:
        from pytest_ortbench.worker.inspection import inspect  # imports packages of plug-ins

        self._enter("import")
        info = runtime.describe()
        if not question.load_plugins:
            return info
        self._enter("plug-ins")
        return inspect(question.plugins)

    def _files(self) -> Staging:
        if self._staging is None:
            # Here and not above: most workers share the host's files.
            from pytest_ortbench.worker.staging import Staging

            self._staging = Staging()
        return self._staging

    def _probe(self, provider: Provider) -> Answer:
        self._import()
        self._enter("session")
        return probe(provider)

    def _write_reference(self, case: Case, path: str) -> Done:
        from pytest_ortbench.worker import accuracy  # needs numpy
        from pytest_ortbench.worker.recorded import recorded_outputs, write_recorded

        self._import()
        self._enter("reference")
        # A model that is named as the reference goes before what lies beside the inputs.
        recorded = () if case.model.reference else recorded_outputs(case.inputs, case.model.outputs)
        if recorded:
            names = [info.name for info in case.model.outputs]
            write_recorded(Path(path), recorded, case.inputs, names, seed=case.seed)
            return Done()
        accuracy.write_reference(
            Path(path),
            session=_reference_session(case),
            specs=case.inputs,
            seed=case.seed,
            label=_reference_label(case),
        )
        return Done()

    def _measure_spread(self, question: MeasureSpread) -> Answer:
        from pytest_ortbench.worker import accuracy  # needs numpy
        from pytest_ortbench.worker.recorded import recorded_outputs
        from pytest_ortbench.worker.spread import spread_of

        self._import()
        self._enter("reference")
        case, path = question.case, Path(question.reference)
        if not case.model.reference and recorded_outputs(case.inputs, case.model.outputs):
            # What was recorded elsewhere may differ for other reasons than those looked for here.
            path = path.with_name(f"{path.name}.own")
            accuracy.write_reference(
                path, session=_reference_session(case), specs=case.inputs, seed=case.seed
            )
        return spread_of(
            path,
            lambda threads: _reference_session(case, threads),
            lambda: _wide_session(case),
            magnitudes=question.magnitudes,
        )

    def _write_scores(self, question: WriteScores) -> Done:
        from pytest_ortbench.worker.task import score, write_scores  # needs numpy

        self._import()
        self._enter("task")
        case = question.case
        scores = score(
            _reference_session(case), question.dataset, case.batch, _reference_label(case)
        )
        write_scores(Path(question.path), scores)
        return Done()

    def _describe(self, question: DescribeModel) -> Answer:
        from pytest_ortbench.worker.interface import (
            describe_model,
        )  # only for models of ORT's format

        self._import()
        self._enter("session")
        return describe_model(question.path, question.custom_ops)

    def _convert(self, question: Convert) -> Answer:
        # Here and not above: it needs onnx, which a measured interpreter need not have.
        from pytest_ortbench.convert.make import convert

        return convert(question.conversion, Path(question.folder), self._enter)

    def _compare_nodes(self, question: CompareNodes) -> Answer:
        from pytest_ortbench.convert.by_node import compare_nodes  # needs onnx

        self._import()
        self._enter("accuracy")
        case = question.case
        return compare_nodes(
            question.reference,
            case.variant.path,
            case.inputs,
            seed=case.seed,
            samples=question.samples,
            custom_ops=case.session.custom_ops,
        )

    def _refusal(self, error: Exception) -> Refusal:
        if isinstance(error, WorkerError):
            return Refusal(
                phase=self._phase, error="WorkerError", text=str(error), failure=error.failure
            )
        if not _is_native(error):
            # An error of ours or of Python's: the log is where its place can be looked up.
            traceback.print_exception(error)
        measured = self._measured
        session = measured.session if measured is not None else None
        return Refusal(
            phase=self._phase,
            error=type(error).__name__,
            text=str(error),
            version=_version("onnxruntime"),
            numpy=_version("numpy"),
            available_providers=_available(),
            session_providers=error.session_providers if isinstance(error, FellBack) else (),
            fed=_fed(measured.feeds) if measured is not None else (),
            declared=tuple(f"{i.name}: {i.type} {i.shape}" for i in session.get_inputs())
            if session is not None
            else (),
        )


def _reference_session(
    case: Case, threads: int | None = None, model: str | bytes = b""
) -> InferenceSession:
    """What is right: the case's source model on the CPU, without optimisation."""
    config = SessionConfig(graph_optimization_level="disable", custom_ops=case.session.custom_ops)
    session, _ = create(
        model or case.model.path,
        Provider(alias="cpu", name=CPU),
        session_options(config, threads=allowance().threads if threads is None else threads),
    )
    return session


def _wide_session(case: Case) -> InferenceSession:
    """The reference with every float32 number widened to float64."""
    from pytest_ortbench.convert.double import to_float64  # needs onnx

    return _reference_session(case, model=to_float64(Path(case.model.path)))


def _reference_label(case: Case) -> str:
    # A file of ONNX Runtime's own format holds the optimised graph already.
    how = "optimised when it was saved" if case.model.path.endswith(".ort") else "no optimisation"
    return f"{case.model.name} as it is on {CPU}, {how}"


def _is_native(error: Exception) -> bool:
    return type(error).__module__.startswith(("onnxruntime", "pytest_ortbench"))


def _version(package: str) -> str:
    """Version of a package if it got imported at all."""
    return str(getattr(sys.modules.get(package), "__version__", ""))


def _available() -> tuple[str, ...]:
    ask = getattr(sys.modules.get("onnxruntime"), "get_available_providers", None)
    return tuple(ask()) if ask is not None else ()


def _fed(feeds: Mapping[str, object]) -> tuple[str, ...]:
    described = []
    for name, value in feeds.items():
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        kind = type(value).__name__ if shape is None else f"{dtype} {list(shape)}"
        described.append(f"{name}: {kind}")
    return tuple(described)
