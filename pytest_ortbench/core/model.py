"""What a model is, before anything runs: its file, its interface, its variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.compilation import Compilation, CompiledPart
from pytest_ortbench.core.extent import Extent
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.core.source import Source

#: Kinds of hints whose values are the same for every seed and every input set.
_FIXED_KINDS = frozenset({"ones", "zeros", "arange", "constant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueHint:
    """What an input's values must be like, and which consumer says so.

    Attributes:
        kind: ``normal`` (mean 0, deviation 1), ``uniform`` and ``integers`` (``low`` … ``high``,
            both included), ``ones``, ``zeros``, ``arange`` (from 0, along the last axis),
            ``choice`` (of ``choices``), ``constant`` (``choices`` in order, repeated to fill),
            ``permutation`` (``low`` … ``high`` along the axis in ``choices``, none twice there),
            ``coordinates`` (points along the last axis, none twice, in a box whose sizes are
            ``choices``), ``ascending`` (``low`` … ``high`` in order along the last axis),
            ``positive-definite`` (symmetric matrices on the last two axes).
        low: Smallest value of ``uniform``, ``integers``, ``permutation`` and ``ascending``.
        high: Largest value, included; of ``arange`` -1 where nothing bounds it.
        low_dim: Size that stands for ``low``, where it depends on another input: an expression
            over symbols (``P``). Empty once the sizes are resolved.
        high_dim: Likewise for ``high`` (``batch - 1``).
        choices: Values of ``choice`` and ``constant``, written as strings; for integers they may
            be expressions over symbols (``seq``) until the sizes are resolved. Also the axis of
            ``permutation`` and the sizes of ``coordinates``.
        why: The consumer that sets the bound, for people: ``Gather(table, axis 0 of size 10)``.
    """

    kind: str
    low: float = 0.0
    high: float = 1.0
    choices: tuple[str, ...] = ()
    why: str = ""
    low_dim: str = ""
    high_dim: str = ""

    @property
    def is_drawn(self) -> bool:
        """Whether values depend on a seed, and on which input set it is."""
        return self.kind not in _FIXED_KINDS


#: What a graph does with an axis of an input.
AXIS_ROLES: dict[str, str] = {
    "batch": "every output has it, and no operator mixes along it",
    "mixed": "an operator mixes along it",
    "partial": "no operator mixes along it, and some output does not have it",
    "unknown": "its way through the graph can't be followed",
}

#: What an image is looked at for, as far as the graph shows it.
IMAGE_KINDS: dict[str, str] = {
    "line": "a line of text that is read from left to right",
    "turned line": "a line of text that is only classified",
    "boxes": "a picture in which things are found",
    "page": "a picture that becomes a map of one channel, as where text is found",
    "map": "a picture that becomes a map of several channels",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRole:
    """What the graph says about one axis of an input.

    Attributes:
        axis: Which axis.
        role: A key of :data:`AXIS_ROLES`.
        why: What says so, for people: ``ReduceMean 'pooled'``.
        tied_to: Symbol that has the same size, since the graph adds or multiplies the two; empty if
            none has to.
        tied_size: Size that another input fixes for it in the same way, 0 if none does.
        least: Smallest size that an operator accepts, 0 if none says so.
        most: Largest size, of a table that is read along the axis; 0 if none says so.
        samples: Whether an operator reads the axis as samples of a sound.
        hop: How far apart its windows stand: ``least`` samples and a multiple of this fill them
            all. 0 where that is not known.
        limit_why: The operator that says ``least``, ``most`` or ``samples``, for people.
        image: A key of :data:`IMAGE_KINDS`, for a side of an image whose use the graph shows; else
            empty.
        image_why: What shows it, for people.
    """

    axis: int
    role: str
    why: str = ""
    tied_to: str = ""
    tied_size: int = 0
    least: int = 0
    most: int = 0
    samples: bool = False
    hop: int = 0
    limit_why: str = ""
    image: str = ""
    image_why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """One declared input or output.

    Attributes:
        name: As in the graph.
        type: ONNX Runtime's spelling: ``tensor(float)``, ``seq(map(int64,tensor(float)))``.
        shape: One entry an axis: a size, a symbol, or ``None`` where the model leaves it unset.
            ``None`` as a whole: the rank itself is unknown. Of a sequence or an optional: the
            shape of its tensors.
        hint: Bounds on the values that the graph accepts, ``None`` where any will do.
        optional: Whether the model runs without it.
        batch_axis: Axis that a consumer reads as the batch (``X`` of an LSTM: 1), ``None`` where
            none says so.
        length_axis: Axis along which an operator appends what is new, as to a cache of keys;
            likewise.
        roles: What the graph says about its axes; empty where nobody asked the graph.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None
    hint: ValueHint | None = None
    optional: bool = False
    batch_axis: int | None = None
    length_axis: int | None = None
    roles: tuple[AxisRole, ...] = ()

    def role_of(self, axis: int) -> AxisRole | None:
        """Return what the graph says about an axis, ``None`` if it was not asked."""
        return next((role for role in self.roles if role.axis == axis), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSize:
    """A size that a file beside the model or its metadata tells.

    Attributes:
        size: The size.
        why: Where it stands, for people: ``preprocessor_config.json``.
    """

    size: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A model file that the user named as what is right.

    Attributes:
        name: For people.
        path: Absolute path of the file.
        digest: SHA-256 over the file and its external data, hexadecimal.
        precision: What the file is by itself (``fp32``).
        external_files: External data files, relative to its folder.
        input_types: ONNX Runtime's spelling of the type of each input.
    """

    name: str
    path: str
    digest: str
    precision: str = "fp32"
    external_files: tuple[str, ...] = ()
    input_types: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFile:
    """The file of an encoder, which runs once before a decoder writes.

    Attributes:
        path: Absolute path of the file.
        source: Where it comes from, as of a model.
        digest: SHA-256 over the file and its external data, hexadecimal.
        size_bytes: File plus external data.
        external_files: External data files, relative to its folder.
        inputs: Declared inputs.
        heard: The output that each input of the decoder takes, by the input.
        default_dims: Sizes of symbolic dimensions that the catalogue names.
        implied_dims: Sizes of dimensions that the graph fixes.
    """

    path: str
    source: str
    digest: str
    size_bytes: int
    external_files: tuple[str, ...] = ()
    inputs: tuple[TensorInfo, ...] = ()
    heard: dict[str, str] = field(default_factory=dict)
    default_dims: dict[str, int] = field(default_factory=dict)
    implied_dims: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStepFile:
    """The file of a decoder's first step, where all later steps have another one.

    Attributes:
        path: Absolute path of the file.
        source: Where it comes from, as of a model.
        digest: SHA-256 over the file and its external data, hexadecimal.
        size_bytes: File plus external data.
        decoder: What its inputs and outputs mean; it has no cache.
        given: Its output that each input of the later steps takes, by that input.
        external_files: External data files, relative to its folder.
        inputs: Declared inputs.
        default_dims: Sizes of symbolic dimensions that the catalogue names.
        implied_dims: Sizes of dimensions that the graph fixes.
    """

    path: str
    source: str
    digest: str
    size_bytes: int
    decoder: Decoder
    given: dict[str, str]
    external_files: tuple[str, ...] = ()
    inputs: tuple[TensorInfo, ...] = ()
    default_dims: dict[str, int] = field(default_factory=dict)
    implied_dims: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnormalWeight:
    """A weight with values so small that many CPUs compute them in microcode.

    Attributes:
        name: Of the stored tensor.
        node: Name of the first node that reads it, or of its first output; empty if none does.
        op_type: Operator of that node.
        values: Number of subnormal values; of large tensors, blocks are counted.
        value_share: Their share in the tensor, above 0 and at most 1.
    """

    name: str
    node: str
    op_type: str
    values: int
    value_share: float


#: From this share of zeros on, weights were pruned: trained ones hold next to none.
PRUNED_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model file.

    Attributes:
        name: What every case id begins with. That of a file is its path relative to the run's root,
            without the suffix; other models are called as the catalogue or the configuration says.
            It does not depend on what else is measured.
        path: Absolute path of the file.
        source: Where it comes from: ``file``, ``builtin:NAME``, ``zoo:NAME``, ``project:NAME``
            for what a project's catalogue fetches or builds, ``test:NAME`` for what a test made, or
            ``export:NAME`` for what was exported.
        digest: SHA-256 over the file and its external data, hexadecimal.
        size_bytes: File plus external data.
        external_files: External data files, relative to the model's folder.
        ir_version: ONNX IR version, ``None`` where the format has none (``.ort``).
        opsets: Operator set version by domain (``ai.onnx`` for the default domain).
        inputs: Declared inputs without those that are initialisers.
        outputs: Declared outputs.
        parameters: Number of elements in all float and integer weights (of trees: thresholds and
            leaf values).
        nodes: Number of nodes in the main graph and all its subgraphs.
        op_types: Node count by ``domain::OpType`` (default domain without a prefix).
        weight_types: Number of elements of stored tensors by element type (``float``, ``int8``).
        default_dims: Sizes of symbolic dimensions that the catalogue names.
        implied_dims: Sizes of symbolic or unset dimensions that the graph itself fixes (a weight
            that they are multiplied with), by symbol; unset ones by the name that
            :attr:`pytest_ortbench.planning.sizes.ModelAxes.symbols` has them.
        workloads: Named presets of sizes (``prefill``, ``decode``) that the catalogue documents.
        random_ops: Operators whose output differs from call to call, so that accuracy can't be
            compared.
        notes: What a reader should know (``optimised offline: tied to the machine that did it``).
        reference: The model that accuracy is compared with; ``None`` for this file itself.
        told_sizes: Sizes that files beside it or its metadata tell, by what they are the size of:
            ``height``, ``width``, ``channels``, ``samples``, ``mels``, ``frames``, ``longest``, and
            of a cache ``heads`` and ``head_size``.
        place: Path of a user's file relative to the run's root, with slashes. Empty for other
            models, and in documents of versions that called files by their last part only.
        zero_share: Share of zeros among the elements of weights with two axes or more, of a float
            type or ``int8``; of large ones, blocks are counted. ``None`` where nobody counted.
        compressed_bytes: File plus external data after zlib at its fastest level; counted only
            where ``zero_share`` tells that weights were pruned.
        is_made: Whether a test made it while it ran.
        weights_as_inputs: Number of weights that are inputs as well, so that ONNX Runtime, which
            must take them for values that may change, folds and prepares none of them. Before IR
            version 4 they are constant all the same, and not counted.
        subnormal_weights: Weights with subnormal values, those with the most first.
        decoder: What its inputs and outputs mean where it writes text token by token; ``None`` for
            any other model, and where that can't be seen.
        encoder: What a decoder listens to; ``None`` where it listens to nothing, or no file of an
            encoder is known.
        first_step: The file of a decoder's first step, where this one is that of the later steps.
        exported_from: What it was exported from in this run; ``None`` for a file as it is.
        compiled: Parts of its graph that providers compiled; empty for a plain file.
    """

    name: str
    path: str
    source: str
    digest: str
    size_bytes: int
    external_files: tuple[str, ...] = ()
    ir_version: int | None = None
    opsets: dict[str, int] = field(default_factory=dict)
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    parameters: int = 0
    nodes: int = 0
    op_types: dict[str, int] = field(default_factory=dict)
    weight_types: dict[str, int] = field(default_factory=dict)
    default_dims: dict[str, int] = field(default_factory=dict)
    implied_dims: dict[str, int] = field(default_factory=dict)
    workloads: dict[str, dict[str, int]] = field(default_factory=dict)
    random_ops: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reference: Reference | None = None
    told_sizes: dict[str, ToldSize] = field(default_factory=dict)
    place: str = ""
    zero_share: float | None = None
    compressed_bytes: int | None = None
    is_made: bool = False
    weights_as_inputs: int = 0
    subnormal_weights: tuple[SubnormalWeight, ...] = ()
    decoder: Decoder | None = None
    encoder: EncoderFile | None = None
    first_step: FirstStepFile | None = None
    exported_from: Source | None = None
    compiled: tuple[CompiledPart, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of the file and of its external data."""
        path = Path(self.path)
        return (path, *(path.parent / name for name in self.external_files))

    @property
    def hears(self) -> tuple[str, ...]:
        """Inputs that an encoder speaks to, those of a first step's file among them."""
        if self.decoder is None:
            return ()
        first = self.first_step
        if first is None:
            return self.decoder.heard
        own = (name for name in self.decoder.heard if name not in first.given)
        return tuple(dict.fromkeys((*first.decoder.heard, *own)))

    @property
    def is_pruned(self) -> bool:
        """Whether so many weights are zero that somebody made them so."""
        return self.zero_share is not None and self.zero_share >= PRUNED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One file of a model at one precision.

    Attributes:
        precision: ``native``, ``fp32``, … or the name of a configured recipe.
        recipe: How it was made, as settings in order; empty for the file as it is.
        path: Absolute path of the file that is measured.
        digest: SHA-256 of that file and its external data.
        size_bytes: That file plus external data.
        external_files: External data files of a converted variant, relative to its folder; those
            of the file as it is stand in its model.
        notes: What a reader should know of how it was made: values that were clamped, types that
            are not known.
        unchecked: Why it was not run when it was made; empty where it was, or nothing was made.
        extent: Its nodes, parameters and multiply-accumulates at the sizes of the case; ``None``
            where nobody counted.
        on_calibration: Whether its answers are compared on the inputs that it was calibrated on.
        compilation: How the file was compiled ahead for its provider; ``None`` for a plain file.
    """

    precision: str
    path: str
    digest: str
    size_bytes: int
    recipe: dict[str, str] = field(default_factory=dict)
    external_files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unchecked: str = ""
    extent: Extent | None = None
    on_calibration: bool = False
    compilation: Compilation | None = None

    @property
    def counted_path(self) -> str:
        """Path of the file whose graph says what is computed: that which a compiled one holds."""
        return self.path if self.compilation is None else self.compilation.source
