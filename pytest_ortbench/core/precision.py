"""Names of precisions, what precision a file has by itself, and the accuracy floor of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_ortbench.core.arithmetic import WITHOUT_PRODUCTS, is_counted
from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.core.recipe import GRAPH_BASES

#: Smallest SQNR in dB that a precision may have against the reference, without labels.
#: A provider that keeps weights in half precision was seen 9.5 % off on an fp32 transformer, which
#: is 20 dB: only a floor that knows the precision sees it.
SQNR_FLOOR_DB: dict[str, float] = {
    "native": 60.0,
    "fp32": 60.0,
    "fp16": 40.0,
    "bf16": 30.0,
    "int8-dynamic": 15.0,
    "int8-static": 15.0,
    "int4": 10.0,
}

PRECISIONS: tuple[str, ...] = tuple(SQNR_FLOOR_DB)

#: Share of whole values (classes, integers, strings) that must agree where an output has no
#: signal to noise ratio. MLPerf keeps 99 % of the fp32 metric; coarser precisions flip more.
_AGREEMENT_FLOOR = {"int8-dynamic": 0.90, "int8-static": 0.90, "int4": 0.80}
_DEFAULT_AGREEMENT = 0.99

#: Providers that multiply float32 in TF32, with ten bits of mantissa, on GPUs that can (Ampere and
#: newer), unless they are told otherwise.

#: A file that the user calls a variant may be another network (pruned, distilled): nothing but
#: its labels can say how near it must stay, so only an output that is mostly noise is refused.
_OWN_VARIANT_FLOOR_DB = 10.0
_OWN_VARIANT_AGREEMENT = 0.80

#: Operators on weights of four bits and fewer.
_FOUR_BIT_OPS = frozenset({"MatMulNBits", "MatMulBnb4", "GatherBlockQuantized", "QMoE"})
_FOUR_BIT_TYPES = frozenset({"int4", "uint4", "int2", "uint2", "float4e2m1"})
#: Beginnings of the names of operators on 8-bit numbers.
_EIGHT_BIT_OPS = (
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantize",
    "QLinear",
    "QGemm",
    "QAttention",
    "QEmbed",
    "QOrdered",
    "MatMulInteger",
    "ConvInteger",
)
_FLOATS = {"float": "fp32", "double": "fp32", "float16": "fp16", "bfloat16": "bf16"}

#: Keys of :attr:`~pytest_ortbench.core.model.Variant.recipe` that this module reads.
BASE, FLOOR, OWN_FILE, HOLDS = "base", "sqnr_floor_db", "file", "holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What outputs must keep against the reference.

    Attributes:
        sqnr_db: Smallest signal to noise ratio.
        agreement: Smallest share of whole values that agree.
        of: Whose floor it is, for people: ``int8-static``, ``native (int8)``.
    """

    sqnr_db: float
    agreement: float
    of: str


def own_precision(
    op_types: Mapping[str, int], weight_types: Mapping[str, int], value_types: tuple[str, ...] = ()
) -> str:
    """Say what precision a file has by itself: ``fp32``, ``fp16``, ``bf16``, ``int8`` or ``int4``.

    Args:
        op_types: Node count by operator type, as in :attr:`Model.op_types`.
        weight_types: Number of weights by element type, as in :attr:`Model.weight_types`.
        value_types: Types of inputs and outputs; they decide where there are no weights.
    """
    ops = {name.rpartition("::")[2] for name in op_types}
    if ops & _FOUR_BIT_OPS or _FOUR_BIT_TYPES & weight_types.keys():
        return "int4"
    if any(op.startswith(_EIGHT_BIT_OPS) for op in ops):
        return "int8"
    counts = {name: count for name, count in weight_types.items() if name in _FLOATS and count}
    if not counts:
        names = [name for name in _FLOATS if any(f"({name})" in text for text in value_types)]
        return _FLOATS[names[0]] if names else "fp32"
    return _FLOATS[max(counts, key=lambda name: counts[name])]


def precision_of(model: Model) -> str:
    """Return :func:`own_precision` of a model that was read."""
    types = tuple(info.type for info in (*model.inputs, *model.outputs))
    return own_precision(model.op_types, model.weight_types, types)


def widens_weights(model: Model) -> bool:
    """Return whether a file stores weights in half precision that its own graph converts.

    It has a conversion for each node that multiplies; what computes in half precision converts in
    fewer places.

    Args:
        model: One whose weights are mostly of half precision.
    """
    names = {name: name.rpartition("::")[2] for name in model.op_types}
    products = sum(
        count
        for name, count in model.op_types.items()
        if is_counted(names[name]) and names[name] not in WITHOUT_PRODUCTS
    )
    return 0 < products <= model.op_types.get("Cast", 0)


def base_of(case: Case) -> str:
    """Return the precision that a case was made to: that of its recipe, or its own name."""
    return case.variant.recipe.get(BASE, case.variant.precision)


def floor_of(case: Case) -> Floor:
    """Return the accuracy floor of a case, by what its file and its reference really are.

    A quantised file need not agree to 60 dB with itself without optimisation: one rounding that
    falls the other way was seen to leave 45 dB, and products that saturate on CPUs without VNNI
    10 to 55 dB. Nor is anything held to more than its reference itself is good for.
    """
    variant = case.variant
    reference = case.model.reference
    reference_is = reference.precision if reference is not None else precision_of(case.model)
    if OWN_FILE in variant.recipe:
        floor = Floor(
            sqnr_db=_OWN_VARIANT_FLOOR_DB, agreement=_OWN_VARIANT_AGREEMENT, of=variant.precision
        )
    elif _is_as_stored(case):
        own = precision_of(case.model)
        name = variant.precision
        floor = _by_name(own, name if own == "fp32" else f"{name} ({own})")
    else:
        made, source = _by_name(base_of(case), variant.precision), _by_name(reference_is, "")
        floor = Floor(
            sqnr_db=min(made.sqnr_db, source.sqnr_db),
            agreement=min(made.agreement, source.agreement),
            of=variant.precision,
        )
    stated = variant.recipe.get(FLOOR)
    if stated is None:
        return _with_tf32(case.provider, floor)
    return Floor(sqnr_db=float(stated), agreement=floor.agreement, of=floor.of)


def _with_tf32(provider: Provider, floor: Floor) -> Floor:
    """Products of float32 keep as many bits as those of float16 where the provider uses TF32."""
    rounds = any(
        link.name in NVIDIA and link.options.get("use_tf32", "1").lower() not in ("0", "false")
        for link in provider.links
    )
    if not rounds or floor.sqnr_db <= SQNR_FLOOR_DB["fp16"]:
        return floor
    return replace(floor, sqnr_db=SQNR_FLOOR_DB["fp16"], of=f"{floor.of} in TF32")


def _by_name(precision: str, of: str) -> Floor:
    known = "int8-static" if precision == "int8" else precision
    return Floor(
        sqnr_db=SQNR_FLOOR_DB.get(known, SQNR_FLOOR_DB["native"]),
        agreement=_AGREEMENT_FLOOR.get(known, _DEFAULT_AGREEMENT),
        of=of,
    )


def _is_as_stored(case: Case) -> bool:
    """Whether the variant computes in what the file stores: the file itself, or its graph."""
    return case.variant.precision == "native" or base_of(case) in GRAPH_BASES


def computed_precision(case: Case) -> str:
    """Return what a case computes in, as :func:`own_precision` names it."""
    if OWN_FILE in case.variant.recipe:
        return case.variant.recipe.get(HOLDS, "fp32")
    if _is_as_stored(case):
        return precision_of(case.model)
    return base_of(case).partition("-")[0]


def keeps_precision(case: Case) -> bool:
    """Whether a variant computes in the precision of the original, or in fp32.

    A file that the user calls a variant may be another network, whatever it holds.
    """
    if OWN_FILE in case.variant.recipe:
        return False
    return base_of(case) == "fp32" or _is_as_stored(case)


def has_fixed_ranges(case: Case) -> bool:
    """Whether activations were given their ranges before the case is run.

    Such a file is right for inputs like those that it was calibrated on, and for no others: ten
    times larger ones saturate, ten times smaller ones drown in the steps. It is compared with its
    reference at the measured magnitude only.
    """
    if OWN_FILE in case.variant.recipe:
        return case.variant.recipe.get(HOLDS) == "int8"
    if _is_as_stored(case):
        # Against itself too: an output of a few steps is shifted by a large part of it where one
        # rounding falls the other way (a tenth of the magnitude: 10 dB a step).
        return precision_of(case.model) == "int8"
    return base_of(case) == "int8-static"
