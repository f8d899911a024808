"""One point of the matrix: what is asked for. Nothing here was observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeAlias

from pytest_ortbench.core.dataset import LABELLED, OWN_DATA, Dataset
from pytest_ortbench.core.endpoint_address import custom_files
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.ids import escape_part, model_part
from pytest_ortbench.core.model import Model, ValueHint, Variant
from pytest_ortbench.core.model_spec import PYTHON
from pytest_ortbench.core.provider import CHAIN as CHAIN
from pytest_ortbench.core.provider import ROLES as ROLES
from pytest_ortbench.core.provider import LaterLink as LaterLink
from pytest_ortbench.core.provider import Provider as Provider
from pytest_ortbench.core.provider import role_note as role_note

#: What identifies a case in a document: (case id, runtime label).
Key: TypeAlias = tuple[str, str]

#: Types between which an input may change from one variant of a model to the other.
FLOAT_TYPES = ("tensor(float)", "tensor(float16)", "tensor(bfloat16)", "tensor(double)")

#: Knobs that change what work is done; all others (``threads``, ``opt``, ``graph``) change how the
#: same work is done, so cases that differ there compete.
WORKLOAD_KNOBS = ("workload", "prompt", "new", "depth", "concurrency", "sessions")

#: Knob of whether sessions are told the sizes of open dimensions.
FIX_DIMS = "fix-dims"
#: Knobs of the level of graph optimisation, and of whether threads spin while they wait.
GRAPH_OPT, SPIN = "opt", "spin"


#: What the name of an array starts with that belongs to a further input set.
FURTHER_SET = "set:"


#: Marks a field that the first version of the document lacked: with its default it is no part of
#: what tells plans apart, so that runs of before go on.
ADDED_LATER: Mapping[str, bool] = MappingProxyType({"added_later": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """An interpreter with ONNX Runtime, as it was asked for.

    Attributes:
        label: ``current``, or a short name that is unique in the run.
        command: How to start its Python; the loader's arguments are appended.
        environment: Variables that differ from the host's environment.
        isolated: Start with ``-I`` (runtimes that we made; never ``current``).
        requirements: The requirement list that made it, empty for others.
        shares_files: Whether it sees the host's file system; otherwise models are staged.
        through_shell: Whether the command hands its arguments to a shell somewhere (``ssh`` does);
            the loader is then passed in a form that no shell changes.
        plugins: Libraries of plug-in providers that the project has configured, by full name of
            the provider; packages that follow the convention are found without.
    """

    label: str = "current"
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    isolated: bool = False
    requirements: tuple[str, ...] = ()
    shares_files: bool = True
    through_shell: bool = False
    plugins: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """Session options under ONNX Runtime's own field names; ``None`` leaves its default.

    Attributes:
        intra_op_num_threads: Threads of one operator, the calling thread included; ``None``: the
            worker takes what its process may use (affinity, cgroup quota, physical cores).
        inter_op_num_threads: Threads across operators (parallel execution mode only).
        graph_optimization_level: ``disable``, ``basic``, ``extended``, ``layout`` or ``all``.
        execution_mode: ``sequential`` or ``parallel``.
        enable_mem_pattern: ONNX Runtime's memory pattern planner.
        enable_mem_reuse: Whether values that are no longer needed leave their memory to later ones.
        enable_cpu_mem_arena: The CPU arena.
        arena_extend_strategy: How the CPU arena grows, ``kNextPowerOfTwo`` or
            ``kSameAsRequested``; empty leaves ONNX Runtime's default.
        arena_initial_chunk_bytes: What the CPU arena takes first.
        entries: ``add_session_config_entry`` pairs.
        custom_ops: Paths of custom operator libraries, and of Python files that define operators.
        fixed_dims: Sizes of open dimensions that the session is told, by their names.
    """

    intra_op_num_threads: int | None = None
    inter_op_num_threads: int | None = None
    graph_optimization_level: str = "all"
    execution_mode: str = "sequential"
    enable_mem_pattern: bool | None = None
    enable_mem_reuse: bool | None = None
    enable_cpu_mem_arena: bool | None = None
    arena_extend_strategy: str = ""
    arena_initial_chunk_bytes: int | None = None
    entries: dict[str, str] = field(default_factory=dict)
    custom_ops: tuple[str, ...] = ()
    fixed_dims: dict[str, int] = field(default_factory=dict)

    @property
    def sets_arena(self) -> bool:
        """Whether the CPU arena is made as the user wants it."""
        return bool(self.arena_extend_strategy) or self.arena_initial_chunk_bytes is not None

    @property
    def python_operators(self) -> tuple[str, ...]:
        """Paths of Python files that define operators."""
        return tuple(path for path in self.custom_ops if PurePath(path).suffix.lower() == PYTHON)


#: Where the size of a symbol may come from.
SIZE_ORIGINS: dict[str, str] = {
    "batch": "it is the batch size",
    "dims": "set by the user, or by the workload that the case is named after",
    "catalogue": "the catalogue",
    "builder": "the builder of the model",
    "graph": "the graph accepts no other size",
    "file": "a file of real inputs",
    "sum": "it is the sum of other dimensions",
    "computed": "it is computed from other dimensions",
    "default": "not stated anywhere: a documented default",
    "baseline": "the default of the model that a gate compares it with",
    "shape": "the input has the shape that the file holds; no dimension is named",
}
#: Those of sizes that nobody set: defaults of the model itself, or of its baseline.
DEFAULT_ORIGINS = ("default", "baseline")


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolSize:
    """The size of one symbolic dimension, and where it came from.

    Attributes:
        symbol: Name of the dimension, or the expression; empty where none is named.
        size: The size.
        origin: A key of :data:`SIZE_ORIGINS`.
        how: The origin for people: ``--ort-dims``, ``default: image size``.
    """

    symbol: str
    size: int
    origin: str
    how: str

    @property
    def text(self) -> str:
        """For people: ``seq=128 (--ort-dims)``."""
        return f"{self.symbol}={self.size} ({self.how})" if self.symbol else self.how


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationStep:
    """One decision on how a user's own files became the values of an input.

    Attributes:
        name: What was decided: ``size``, ``scale``, ``rate``.
        value: What it came to.
        origin: Who says so, for people: ``preprocessor_config.json``, ``default``.
    """

    name: str
    value: str
    origin: str

    @property
    def text(self) -> str:
        """For people: ``scale 1/255 (default)``."""
        return f"{self.name} {self.value} ({self.origin})"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """One input with every size resolved, and how its values come about.

    Attributes:
        name: As in the graph.
        type: ONNX Runtime's spelling of the type.
        shape: One size an axis; empty for a scalar.
        hint: How values are drawn.
        path: File that holds the values instead (``.npy``, ``.npz``, ``.pb``), empty for drawn.
        member: Name of the array inside ``path`` where it holds several.
        resolved: Size and origin of each symbol.
        stored_type: Type of the values inside ``path`` where they are fed in another float type;
            empty where ``type`` is what it holds.
        prepared: How photos, sounds or texts became what is inside ``path``; empty otherwise.
        sets: Input sets inside ``path``: the first is timed, the answers to all are compared.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    hint: ValueHint
    path: str = ""
    member: str = ""
    resolved: tuple[SymbolSize, ...] = ()
    stored_type: str = ""
    prepared: tuple[PreparationStep, ...] = ()
    sets: int = 1

    def of_set(self, number: int) -> InputSpec:
        """Return this input with the values of another set, if a file holds several."""
        index = number % self.sets
        return replace(self, member=f"{FURTHER_SET}{index}:{self.member}") if index else self

    @property
    def is_drawn(self) -> bool:
        """Whether its values are drawn from a seed, and come from no file."""
        return not self.path and self.hint.is_drawn

    @property
    def sizes_text(self) -> str:
        """How each symbol got its size, for people; empty where there is none."""
        return "; ".join(size.text for size in self.resolved)

    def typed(self, wanted: str) -> InputSpec:
        """Return this input with another float type: the same values, rounded differently.

        Args:
            wanted: ONNX Runtime's spelling of a type; one that is no float changes nothing.
        """
        if self.type == wanted or self.type not in FLOAT_TYPES or wanted not in FLOAT_TYPES:
            return self
        if not self.path:
            return replace(self, type=wanted)
        stored = self.stored_type or self.type
        return replace(self, type=wanted, stored_type="" if stored == wanted else stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How long and how often a case is measured.

    Attributes:
        time_s: Timed seconds over all workers, warm-up not counted.
        target: Stop once the half-width of the median's interval is below this share of it.
        workers: Fresh processes.
        min_samples: Samples that a limit needs (368 for p99), over all workers.
        timeout_s: Wall-clock limit of the case; past it the worker is killed. What it is compared
            with, its reference, has as long for itself.
        keep: Durations kept per case; 0 keeps all.
        soak_s: Length of the soak pass, which the timeout does not include; 0 for none.
        soak_dims: Sizes of symbolic dimensions that vary within the soak; empty: the case's own.
        endurance_s: Length of the soak of a service, likewise; 0 for none.
        endurance_per_s: Requests a second of it; 0 for a share of what one caller gets.
        endurance_faults: What is done to the service meanwhile.
        python_profile: Profilers of Python that look at the user's stages or service besides.
        energy_window_s: Shortest window of the energy pass.
        processes: Numbers of processes at a time, in a pass of its own.
        loads: Loads that the case is put under, as written; each has the timeout for itself.
        load_official: Whether they last as long as MLPerf's rules ask for.
        load_logs: Folder that keeps the generator's logs; empty for none.
        text: File of text whose tokens language models are asked to foresee; empty for none.
        export_check: Whether exports are compared with their source: ``auto`` or ``off``.
        yardstick: What blocks of the model take turns with, one of
            :data:`~pytest_ortbench.core.yardstick.YARDSTICK_CHOICES`.
    """

    time_s: float = 5.0
    target: float = 0.01
    workers: int = 3
    min_samples: int = 0
    timeout_s: float = 300.0
    keep: int = 3000
    soak_s: float = 0.0
    soak_dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    endurance_s: float = 0.0
    endurance_per_s: float = 0.0
    endurance_faults: tuple[str, ...] = ()
    python_profile: tuple[str, ...] = ()
    energy_window_s: float = 5.0
    processes: tuple[int, ...] = ()
    loads: tuple[str, ...] = ()
    load_official: bool = False
    load_logs: str = ""
    text: str = ""
    export_check: str = "auto"
    yardstick: str = "auto"


class _Named:
    """Room for the key of a case, which is asked for often and spelt once."""

    __slots__ = ("_key",)
    _key: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(_Named):
    """One point of the matrix.

    Attributes:
        model: The model as the user named it.
        variant: The file that runs.
        provider: Where it should run.
        runtime: In which interpreter.
        session: Session options.
        batch: Size of the batch axis, which is the number of items of one inference; 1 where the
            model has none.
        dims: Sizes of symbolic dimensions that the user set. They stand in the id even when there
            is one value only, so that a second value later does not rename the first case.
        knobs: Further axes that the user set, by their id name (``threads``: ``4``); likewise.
        inputs: Every input, resolved.
        concurrency: Callers on each session at a time.
        sessions: Sessions in the process, all of the same file and options.
        call: ``sync`` (``run``, which returns with the outputs) or ``async`` (``run_async``).
        io: ``end-to-end`` (host arrays in and out) or ``device`` (bound, device-resident).
        sampling: How it is measured.
        seed: Seed of the random inputs.
        stages: Path of the user's file of stages; empty for none. They are a pass of their own.
        together: Models that it runs beside in a pass of its own, by name or file.
        added_work: Numbers whose sine is taken after each inference, inside the timed region: the
            known slowdown by which the gate tests itself. 0 for every real case.
        dataset: Labelled data that it is scored on; ``None`` for none.
        file_contents: What further files held when it was planned, by path: SHA-256, or size and
            time of large ones. Inputs, libraries, stages, labelled data, as far as they are here.
        expected: Outputs that the user expects of the inputs: values that lie beside theirs.
        no_batch: Why one inference is one item, for people: what looks like a batch and is none.
            Empty where the inputs have a batch axis.
        generation: The request that is timed instead of an inference; ``None`` for an inference.
        encoder_inputs: What the encoder of the model reads at the beginning of each request; empty
            where a request has none.
        first_inputs: What the file of a decoder's first step takes beside tokens, mask, positions;
            empty where one file makes all steps.
        compiled: Whether the provider compiles its file ahead, so that sessions only load it.
    """

    model: Model
    variant: Variant
    provider: Provider
    runtime: Runtime = field(default_factory=Runtime)
    session: SessionConfig = field(default_factory=SessionConfig)
    batch: int = 1
    dims: dict[str, int] = field(default_factory=dict)
    knobs: dict[str, str] = field(default_factory=dict)
    inputs: tuple[InputSpec, ...] = ()
    concurrency: int = 1
    sessions: int = 1
    call: str = "sync"
    io: str = "end-to-end"
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    stages: str = ""
    together: tuple[str, ...] = field(default=(), metadata=ADDED_LATER)
    added_work: int = 0
    dataset: Dataset | None = None
    file_contents: dict[str, str] = field(default_factory=dict)
    no_batch: str = ""
    expected: tuple[InputSpec, ...] = ()
    generation: Generation | None = field(default=None, metadata=ADDED_LATER)
    encoder_inputs: tuple[InputSpec, ...] = field(default=(), metadata=ADDED_LATER)
    first_inputs: tuple[InputSpec, ...] = field(default=(), metadata=ADDED_LATER)
    compiled: bool = field(default=False, metadata=ADDED_LATER)

    @property
    def is_source(self) -> bool:
        """Whether it runs what the model was exported from as it is: what it answers is right."""
        source, provider = self.model.exported_from, self.provider
        return (
            source is not None
            and provider.role == "framework"
            and provider.alias == source.framework
            and not provider.options
        )

    def further_files(self) -> Iterator[str]:
        """Paths of what it reads besides models; those of libraries may be of another machine."""
        yield from dict.fromkeys(
            path
            for path in (
                *(spec.path for spec in self.inputs),
                *self.session.custom_ops,
                *self.runtime.plugins.values(),
                *(link.library for link in self.provider.links),
                self.stages,
                *self.source_files,
                *self.endpoint_files,
                *(
                    ("", "")
                    if self.dataset is None
                    else (self.dataset.path, self.dataset.user_code)
                ),
            )
            if path
        )

    @property
    def source_files(self) -> tuple[str, ...]:
        """Paths of what a framework reads of the source; others run its export alone."""
        source = self.model.exported_from
        return () if source is None or self.provider.role != "framework" else source.files

    @property
    def endpoint_files(self) -> tuple[str, ...]:
        """Path of the user's file that sends the requests of an endpoint, if one does."""
        url = self.provider.options.get("url", "") if self.provider.is_endpoint else ""
        return custom_files(url)

    @property
    def draws_inputs(self) -> bool:
        """Whether it is fed drawn values only: where any input comes from a file, it is not."""
        return any(spec.is_drawn for spec in self.inputs) and not any(
            spec.path for spec in self.inputs
        )

    @property
    def is_scored_on_calibration(self) -> bool:
        """Whether samples that it was calibrated on are among those that it is scored on.

        Known where the user's own files are fed, calibrate and are scored, without a second name.
        """
        if not self.variant.on_calibration or self.dataset is None:
            return False
        scored = PurePath(self.dataset.path)
        if scored.parts[-4:-3] != (OWN_DATA,) or scored.parts[-2] != LABELLED:
            return False
        return any(PurePath(spec.path).parent == scored.parents[1] for spec in self.inputs)

    @property
    def drawn_beside_files(self) -> tuple[str, ...]:
        """Names of the inputs that are drawn where others come from a file."""
        if not any(spec.path for spec in self.inputs):
            return ()
        return tuple(spec.name for spec in self.inputs if spec.is_drawn)

    @property
    def callers(self) -> int:
        """Inferences that are in flight at a time, over all sessions."""
        return self.concurrency * self.sessions

    @property
    def case_id(self) -> str:
        """``model/precision/provider/b<batch>[/dim:value…][/knob:value…]``, no host, no commit."""
        return self.key[0]

    @property
    def key(self) -> Key:
        """What identifies the case in a document: (case id, runtime label)."""
        try:
            return self._key
        except AttributeError:
            object.__setattr__(self, "_key", (self._spelt(), self.runtime.label))
            return self._key

    def _spelt(self) -> str:
        parts = [
            model_part(self.model.name),
            escape_part(self.variant.precision),
            escape_part(self.provider.label),
            f"b{self.batch}",
        ]
        parts += [f"{escape_part(name)}:{value}" for name, value in self.dims.items()]
        parts += [f"{escape_part(name)}:{escape_part(value)}" for name, value in self.knobs.items()]
        return "/".join(parts)
