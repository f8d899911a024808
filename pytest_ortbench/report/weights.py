"""What a reader should know of weights: zeros, inputs that keep them from being folded, subnormals.

A line for each, with the ratio where the run measured a form without the trait.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ortbench.analysis.precisions import PrecisionRatio
from pytest_ortbench.analysis.twins import Contrasted, pruned_pairs, unfolded_pairs
from pytest_ortbench.analysis.validity import slow_weights
from pytest_ortbench.core.model import Model, SubnormalWeight
from pytest_ortbench.core.session_entries import DENORMAL_AS_ZERO
from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.report.arithmetic import format_count
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line


def weight_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Say of each model what its weights have to do with its speed.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.

    Returns:
        A line for each pair of cases; none where the weights are as usual.
    """
    lines = [
        *(_pruned_line(pair, shown) for pair in pruned_pairs(shown.summaries)),
        *(_unfolded_line(pair, shown) for pair in unfolded_pairs(shown.summaries)),
        *_subnormal_lines(shown),
    ]
    return [encodable(one_line(line), encoding) for line in lines]


def weight_notes(model: Model) -> Iterator[str]:
    """Yield what ``models inspect`` says of weights that ONNX Runtime can't treat as usual.

    Args:
        model: Any model.
    """
    if model.weights_as_inputs:
        yield f"{_unfolded(model)}: {_COST}"
    for weight in model.subnormal_weights:
        yield f"{_subnormal(weight)}: {_ADVICE}"


def weights_as_inputs_text(model: Model) -> str:
    """Return ``5 weights are also inputs``; empty where none is."""
    count = model.weights_as_inputs
    if count == 1:
        return "1 weight is also an input"
    return f"{count} weights are also inputs" if count else ""


def zeros_text(model: Model) -> str:
    """Return the share of zeros among the weights: ``70 % zeros``; empty where nobody counted."""
    share = model.zero_share
    if share is None:
        return ""
    return (
        f"{significant(100 * share, 2) if share < 0.995 else significant(100 * share, 3)} % zeros"
    )


_COST = "--ort-precisions=native,cleaned measures what that costs"
_ADVICE = (
    f"many CPUs compute them many times slower; --ort-session-option={DENORMAL_AS_ZERO}=1 takes "
    f"them as zero, and --ort-against=option:{DENORMAL_AS_ZERO}=1 measures what that changes"
)


def _pruned_line(pair: Contrasted, shown: ShownRun) -> str:
    model = pair.marked.model
    kernels = f"{zeros_text(model)}, dense kernels"
    packed = _compressed(model)
    if pair.plain is None:
        return f"{model.name}: {kernels}: zeros are computed like other weights{packed}"
    against = f"{shown.name_of(pair.marked)} against {shown.name_of(pair.plain)}"
    return f"{against}: {kernels}: {_speed(pair.latency)}{packed}"


def _unfolded_line(pair: Contrasted, shown: ShownRun) -> str:
    model = pair.marked.model
    if pair.plain is None:
        return f"{model.name}: {_unfolded(model)}: {_COST}"
    against = f"{shown.name_of(pair.marked)} against {shown.name_of(pair.plain)}"
    return f"{against}: {_unfolded(model)}: {_speed(pair.latency)}"


def _unfolded(model: Model) -> str:
    each = "it" if model.weights_as_inputs == 1 else "them"
    return f"{weights_as_inputs_text(model)}, so ONNX Runtime does not fold {each}"


def _subnormal_lines(shown: ShownRun) -> Iterator[str]:
    """A line for each model that was measured with such weights."""
    measured = [summary.case for summary in shown.summaries if summary.status == "measured"]
    weights = {case.model.name: slow_weights(case) for case in measured if slow_weights(case)}
    for name, (first, *others) in weights.items():
        more = f" (and {counted(len(others), 'more weight')})" if others else ""
        yield f"{name}: {_subnormal(first)}{more}: {_ADVICE}"


def _subnormal(weight: SubnormalWeight) -> str:
    """``w of MatMul 'mm' holds 262 k subnormal values (100 %)``."""
    reader = f" of {weight.op_type} {weight.node!r}" if weight.op_type else ""
    share = significant(100 * weight.value_share, 2)
    return f"{weight.name}{reader} holds {format_count(weight.values)} subnormal values ({share} %)"


def _speed(ratio: PrecisionRatio | None) -> str:
    if ratio is None:
        return "a time is missing"
    value = significant(ratio.value if ratio.value >= 1 else 1 / ratio.value, 3)
    if ratio.tie:
        return f"same speed (×{significant(ratio.value, 3)})"
    return f"×{value} faster" if ratio.value < 1 else f"×{value} slower"


def _compressed(model: Model) -> str:
    if model.compressed_bytes is None:
        return ""
    before, after = (format_amount(n, "bytes") for n in (model.size_bytes, model.compressed_bytes))
    return f"; {after} compressed, {before} as it is"
