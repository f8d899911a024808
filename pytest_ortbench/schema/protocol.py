"""What host and worker say to each other: one dataclass a message, and nothing else.

The host asks, the worker answers each question once. Before its answer the worker may say any
number of times which phase it enters. An answer is the named result or a :class:`Refusal`.

========================  ===========================================================
question                  answer
========================  ===========================================================
:class:`Inspect`          :class:`~pytest_ortbench.core.outcome.RuntimeInfo`
:class:`StoreChunk`       :class:`Stored`
:class:`FetchChunk`       :class:`Fetched`
:class:`ProbeProvider`    :class:`Probed`
:class:`WriteReference`   :class:`Done`
:class:`DescribeModel`    :class:`ModelInterface`
:class:`Convert`          :class:`~pytest_ortbench.core.recipe.Converted`
:class:`CompareNodes`     :class:`~pytest_ortbench.core.node_error.NodeErrors`
:class:`MeasureSpread`    :class:`~pytest_ortbench.core.accuracy.ReferenceSpread`
:class:`ImportRuntime`    :class:`Done`
:class:`Open`             :class:`Opened`
:class:`WarmUpFor`        :class:`~pytest_ortbench.core.outcome.WarmUp`
:class:`TimeBlock`        :class:`~pytest_ortbench.core.outcome.Block`
:class:`CheckOutputs`     :class:`~pytest_ortbench.core.outcome.OutputCheck`
:class:`ReadMemory`       :class:`~pytest_ortbench.core.outcome.Memory`
:class:`ProfilePlacement` :class:`~pytest_ortbench.core.outcome.Placement`
:class:`CompareOutputs`   :class:`~pytest_ortbench.core.outcome.Accuracy`
:class:`MeasureEnergy`    :class:`~pytest_ortbench.core.energy.Energy`
:class:`ProfileOperators` :class:`~pytest_ortbench.core.profile.OperatorProfile`
:class:`SoakFor`          :class:`~pytest_ortbench.core.soak.Soak`
:class:`PutUnderLoad`     :class:`~pytest_ortbench.core.load.LoadTest`
:class:`StartUp`          :class:`~pytest_ortbench.core.start_up.StartTrial`
:class:`LoadStages`       :class:`~pytest_ortbench.core.stages.StagesReady`
:class:`RunFrames`        :class:`~pytest_ortbench.core.stages.FrameBlock`
:class:`WriteScores`      :class:`Done`
:class:`ScoreTask`        :class:`~pytest_ortbench.core.task.TaskAccuracy`
:class:`Close`            none: the worker ends
========================  ===========================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.energy import Energy
from pytest_ortbench.core.load import LoadTest
from pytest_ortbench.core.node_error import NodeErrors
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Failure,
    Memory,
    OutputCheck,
    Placement,
    RuntimeInfo,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.core.recipe import Converted
from pytest_ortbench.core.soak import Soak
from pytest_ortbench.core.stages import FrameBlock, StagesReady
from pytest_ortbench.core.start_up import StartTrial
from pytest_ortbench.core.task import TaskAccuracy
from pytest_ortbench.schema.model_questions import CompareNodes as CompareNodes
from pytest_ortbench.schema.model_questions import Convert as Convert
from pytest_ortbench.schema.model_questions import DescribeModel as DescribeModel
from pytest_ortbench.schema.model_questions import MeasureSpread as MeasureSpread
from pytest_ortbench.schema.model_questions import ModelInterface as ModelInterface
from pytest_ortbench.schema.model_questions import WriteReference as WriteReference
from pytest_ortbench.schema.pass_questions import LoadStages as LoadStages
from pytest_ortbench.schema.pass_questions import MeasureEnergy as MeasureEnergy
from pytest_ortbench.schema.pass_questions import ProfileOperators as ProfileOperators
from pytest_ortbench.schema.pass_questions import PutUnderLoad as PutUnderLoad
from pytest_ortbench.schema.pass_questions import RunFrames as RunFrames
from pytest_ortbench.schema.pass_questions import ScoreTask as ScoreTask
from pytest_ortbench.schema.pass_questions import SoakFor as SoakFor
from pytest_ortbench.schema.pass_questions import StartUp as StartUp
from pytest_ortbench.schema.pass_questions import WriteScores as WriteScores
from pytest_ortbench.schema.side_questions import CompareSides as CompareSides
from pytest_ortbench.schema.side_questions import OutputsCompared as OutputsCompared
from pytest_ortbench.schema.side_questions import OutputsWritten as OutputsWritten
from pytest_ortbench.schema.side_questions import WriteOutputs as WriteOutputs
from pytest_ortbench.schema.side_questions import WriteOwnScores as WriteOwnScores
from pytest_ortbench.schema.wire import Plain, WireError, from_plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect:
    """Import ONNX Runtime and describe this interpreter, with the plug-ins that are found.

    Attributes:
        plugins: Libraries of plug-ins that the project has configured, by name of the provider.
        load_plugins: Whether plug-ins are looked for and loaded at all.
    """

    plugins: dict[str, str] = field(default_factory=dict)
    load_plugins: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChunk:
    """Append to a file in the worker's own temporary folder, which is removed when it ends.

    For runtimes that do not see the host's file system.

    Attributes:
        name: Where in the folder, with ``/`` between parts.
        data: The next bytes, in base64.
        size_bytes: Size of the whole file; with its last byte the file is complete.
        digest: SHA-256 of the whole file, hexadecimal; checked when it is complete.
    """

    name: str
    data: str
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A chunk is on disk; ``path`` is the file's absolute path on the worker's side."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchChunk:
    """Read from a file in the worker's own temporary folder, ``offset`` bytes behind its start."""

    path: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Bytes of a file.

    Attributes:
        data: The bytes, in base64.
        size_bytes: Size of the whole file.
        digest: SHA-256 of the whole file, with its last bytes; empty before.
    """

    data: str
    size_bytes: int
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProvider:
    """Run two tiny models on a provider and say what executed them."""

    provider: Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRuntime:
    """Import ONNX Runtime, so that it is there when a case is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Make inputs and session, and run the first inference.

    Attributes:
        case: What to measure.
        engines: Folder for engines that providers build, kept for the other workers of the run;
            empty keeps none.
    """

    case: Case
    engines: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpFor:
    """Run untimed work until no trend is left, ``budget_s`` seconds at most."""

    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBlock:
    """Time ``iterations`` single inferences."""

    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutputs:
    """Look at the outputs of one more, untimed inference. ``run``: first, middle or last."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMemory:
    """Say how much memory session and runs took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePlacement:
    """Release the measured session and prove in a profiled one what runs where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOutputs:
    """Compare outputs with those in the file ``reference``."""

    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """End the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntered:
    """The worker begins with ``phase``, a key of :data:`pytest_ortbench.core.outcome.PHASES`."""

    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing to report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The session exists and ran once.

    Attributes:
        info: The interpreter.
        startup: What happened once.
        threads: Intra-op threads in force.
        threads_source: Why that number.
        cpus: CPUs that the process may use.
        options_in_force: What the session reads back for the asked provider.
        clock_pair_ns: Cost of a pair of clock readings.
        no_energy: Why the energy of the device can't be measured; empty if it can.
        unconfirmed: Options of session and provider that nothing confirms, and why not.
    """

    info: RuntimeInfo
    startup: Startup
    threads: int
    threads_source: str
    cpus: int
    options_in_force: dict[str, str]
    clock_pair_ns: int
    no_energy: str = ""
    unconfirmed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What executed the tiny models.

    Attributes:
        placements: By name of the model.
        refused: Native message by name of each model that did not run.
    """

    placements: dict[str, Placement]
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The worker could not do it and lives on: raw facts, from which the host makes a failure.

    Attributes:
        phase: Where it happened.
        error: Class of the exception (``InvalidArgument``), or one of the worker's own reasons.
        text: Its message as it was.
        version: ``onnxruntime.__version__``, empty before the import.
        numpy: numpy's version, empty where it could not be imported.
        available_providers: What the runtime claims to have.
        session_providers: What the session lists, if one was made.
        fed: Inputs as they were fed, for people: ``x: float32 [2, 6]``.
        declared: Inputs as the model declares them: ``x: tensor(float) ['B', 6]``.
        failure: What the worker found out by itself; nothing is left to be explained then.
    """

    phase: str
    error: str
    text: str
    version: str = ""
    numpy: str = ""
    available_providers: tuple[str, ...] = ()
    session_providers: tuple[str, ...] = ()
    fed: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    failure: Failure | None = None


Question = (
    Inspect
    | StoreChunk
    | FetchChunk
    | ProbeProvider
    | WriteReference
    | DescribeModel
    | Convert
    | CompareNodes
    | MeasureSpread
    | ImportRuntime
    | Open
    | WarmUpFor
    | TimeBlock
    | CheckOutputs
    | ReadMemory
    | ProfilePlacement
    | CompareOutputs
    | WriteOutputs
    | CompareSides
    | MeasureEnergy
    | ProfileOperators
    | SoakFor
    | PutUnderLoad
    | StartUp
    | LoadStages
    | RunFrames
    | WriteScores
    | WriteOwnScores
    | ScoreTask
    | Close
)
Answer = (
    RuntimeInfo
    | Stored
    | Fetched
    | Probed
    | Done
    | Opened
    | WarmUp
    | Block
    | OutputCheck
    | Memory
    | Placement
    | Accuracy
    | OutputsWritten
    | OutputsCompared
    | ModelInterface
    | Converted
    | NodeErrors
    | ReferenceSpread
    | Energy
    | OperatorProfile
    | Soak
    | LoadTest
    | StartTrial
    | StagesReady
    | FrameBlock
    | TaskAccuracy
    | PhaseEntered
    | Refusal
)

_QUESTIONS: dict[str, type[Question]] = {cls.__name__: cls for cls in Question.__args__}
_ANSWERS: dict[str, type[Answer]] = {cls.__name__: cls for cls in Answer.__args__}


def pack(message: Question | Answer) -> Plain:
    """Wrap a message with its name, ready for a frame."""
    return {"message": type(message).__name__, "value": to_plain(message)}


def unpack_question(plain: Plain) -> Question:
    """Read what the host asks.

    Raises:
        WireError: if it is none of the questions.
    """
    name, value = _open(plain)
    if name not in _QUESTIONS:
        raise WireError(f"unknown question {name!r}")
    return from_plain(_QUESTIONS[name], value)


def unpack_answer(plain: Plain) -> Answer:
    """Read what the worker says.

    Raises:
        WireError: if it is none of the answers.
    """
    name, value = _open(plain)
    if name not in _ANSWERS:
        raise WireError(f"unknown answer {name!r}")
    return from_plain(_ANSWERS[name], value)


def _open(plain: Plain) -> tuple[str, Plain]:
    if isinstance(plain, dict) and isinstance(plain.get("message"), str) and "value" in plain:
        return plain["message"], plain["value"]
    raise WireError(f"{str(plain)[:60]!r} is not a message")
