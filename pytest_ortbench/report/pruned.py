"""What is said of pruned models: their zeros, whether these save time, and the compressed size."""

from __future__ import annotations

from pytest_ortbench.analysis.pruned import PrunedPair, pruned_pairs
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line


def pruned_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Say of each pruned model how it stands to its dense form, or what its zeros are good for.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.

    Returns:
        A line for each pair of cases; none where no weights were pruned.
    """
    pairs = pruned_pairs(shown.summaries)
    return [encodable(one_line(_line(pair, shown)), encoding) for pair in pairs]


def zeros_text(model: Model) -> str:
    """Return the share of zeros among the weights: ``70 % zeros``; empty where nobody counted."""
    share = model.zero_share
    if share is None:
        return ""
    return (
        f"{significant(100 * share, 2) if share < 0.995 else significant(100 * share, 3)} % zeros"
    )


def _line(pair: PrunedPair, shown: ShownRun) -> str:
    model = pair.pruned.model
    kernels = f"{zeros_text(model)}, dense kernels"
    packed = _compressed(model)
    if pair.dense is None:
        return f"{model.name}: {kernels}: zeros are computed like other weights{packed}"
    against = f"{shown.name_of(pair.pruned)} against {shown.name_of(pair.dense)}"
    ratio = pair.latency
    if ratio is None:
        return f"{against}: {kernels}; a time is missing{packed}"
    value = significant(ratio.value if ratio.value >= 1 else 1 / ratio.value, 3)
    if ratio.tie:
        speed = f"same speed (×{significant(ratio.value, 3)})"
    elif ratio.value < 1:
        speed = f"×{value} faster"
    else:
        speed = f"×{value} slower"
    return f"{against}: {kernels}: {speed}{packed}"


def _compressed(model: Model) -> str:
    if model.compressed_bytes is None:
        return ""
    before, after = (format_amount(n, "bytes") for n in (model.size_bytes, model.compressed_bytes))
    return f"; {after} compressed, {before} as it is"
