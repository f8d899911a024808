"""How a model becomes a variant: the recipe, and one conversion with all that it needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.case import InputSpec

#: What a recipe can start from, and the settings that mean something there.
BASES: dict[str, tuple[str, ...]] = {
    "fp32": ("keep_io_types", "simplify"),
    "fp16": ("keep_io_types", "block_list", "nodes_to_exclude", "simplify"),
    "bf16": ("keep_io_types", "block_list", "nodes_to_exclude", "simplify"),
    "int8-dynamic": (
        "weight_type",
        "per_channel",
        "reduce_range",
        "op_types",
        "nodes_to_exclude",
        "preprocess",
        "simplify",
    ),
    "int8-static": (
        "weight_type",
        "activation_type",
        "per_channel",
        "reduce_range",
        "calibration",
        "percentile",
        "calibration_samples",
        "calibration_data",
        "op_types",
        "nodes_to_exclude",
        "preprocess",
        "simplify",
    ),
    "int4": ("block_size", "symmetric", "accuracy_level", "nodes_to_exclude", "simplify"),
    "cleaned": (),
    "simplified": (),
    "optimized": ("level", "simplify"),
}

#: Bases that change the graph and no precision.
GRAPH_BASES = ("cleaned", "simplified", "optimized")

#: Levels at which ONNX Runtime can save the graph that it made.
OFFLINE_LEVELS = ("basic", "extended", "layout", "all")
#: Those whose result is for hardware like that of the machine that saved it.
TIED_LEVELS = ("layout", "all")

#: Ways to choose the range of a quantised activation.
CALIBRATIONS = ("minmax", "entropy", "percentile")
WEIGHT_TYPES = ("int8", "uint8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a variant is made. Settings that a base does not list in :data:`BASES` are ignored.

    Attributes:
        name: Name of the precision in ids and on the command line.
        base: A key of :data:`BASES`.
        weight_type: ``int8`` or ``uint8``.
        activation_type: Likewise, of statically quantised activations.
        per_channel: One scale an output channel instead of one a tensor.
        reduce_range: Seven bits for weights, so that products of CPUs without VNNI can't
            saturate.
        op_types: Operator types to quantise; empty for all that ONNX Runtime can.
        nodes_to_exclude: Names of nodes that stay in float.
        block_list: Operator types that stay in float32; ``None`` for ONNX Runtime's own list.
        keep_io_types: Whether inputs and outputs keep their types, with casts inside.
        preprocess: Whether ONNX Runtime optimises the graph and infers shapes before quantising.
        calibration: One of :data:`CALIBRATIONS`.
        percentile: Share of the values, in percent, that the range holds (``percentile`` only).
        calibration_samples: Number of random input sets; 0 for as many as the inputs need. Of
            stored ones all are used.
        calibration_data: Absolute path of stored input sets, empty for drawn ones.
        block_size: Weights that share a scale (4 bits).
        symmetric: Whether the zero point is fixed (4 bits).
        accuracy_level: How MatMulNBits computes: 0 is the kernel's choice, 4 is int8.
        simplify: Whether the graph is simplified first (constants folded, patterns fused).
        level: Level at which ONNX Runtime optimises offline, one of :data:`OFFLINE_LEVELS`.
        sqnr_floor_db: Accuracy floor; ``None`` for that of the base.
    """

    name: str
    base: str
    weight_type: str = ""
    activation_type: str = ""
    per_channel: bool = False
    reduce_range: bool = False
    op_types: tuple[str, ...] = ()
    nodes_to_exclude: tuple[str, ...] = ()
    block_list: tuple[str, ...] | None = None
    keep_io_types: bool = True
    preprocess: bool = True
    calibration: str = "minmax"
    percentile: float = 99.999
    calibration_samples: int = 0
    calibration_data: str = ""
    block_size: int = 32
    symmetric: bool = True
    accuracy_level: int = 0
    simplify: bool = False
    level: str = "extended"
    sqnr_floor_db: float | None = None

    def settings(self) -> dict[str, str]:
        """Return every setting in force, as text: what results show, and what decides the file."""
        shown = {"base": self.base}
        for name in BASES[self.base]:
            if name == "percentile" and self.calibration != "percentile":
                continue
            if name == "calibration_samples" and not self.calibration_samples:
                continue
            if name == "simplify" and not self.simplify:
                continue
            value = getattr(self, name)
            # No block list at all is something else than ONNX Runtime's own.
            if value not in ("", (), None) or (name == "block_list" and value is not None):
                shown[name] = _text(value)
        if self.sqnr_floor_db is not None:
            shown["sqnr_floor_db"] = f"{self.sqnr_floor_db:g}"
        return shown


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One variant that has to be made before it can be measured.

    Attributes:
        recipe: How.
        source: Absolute path of the model file.
        digest: Its digest.
        size_bytes: Its size, external data included.
        own_precision: What the file is already, a key of
            :data:`~pytest_ortbench.core.precision.SQNR_FLOOR_DB`.
        inputs: What it is fed: for checking the result, and for drawing calibration data.
        calibration: Stored input sets; empty where they are drawn.
        seed: Seed of drawn values.
        custom_ops: Custom operator libraries that the model needs.
        external_files: External data files of the source, relative to its folder.
    """

    recipe: Recipe
    source: str
    digest: str
    size_bytes: int
    own_precision: str
    inputs: tuple[InputSpec, ...]
    calibration: tuple[tuple[InputSpec, ...], ...] = ()
    seed: int = 0
    custom_ops: tuple[str, ...] = ()
    external_files: tuple[str, ...] = ()

    @property
    def widened(self) -> bool:
        """Whether the file is made float32, twice its size, before the tool of the base gets it."""
        return self.own_precision != "fp32" and self.recipe.base not in ("fp32", *GRAPH_BASES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What a conversion made.

    Attributes:
        file: Name of the model file in its folder.
        external_files: Names of its external data files.
        digest: SHA-256, as that of any model.
        size_bytes: File plus external data.
        facts: What came out, in order: weights that changed, nodes left in float, tools.
        notes: What a reader should know: clamped values, types that are not known.
        unchecked: Why it was not run when it was made; empty where it was.
    """

    file: str
    digest: str
    size_bytes: int
    external_files: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unchecked: str = ""
