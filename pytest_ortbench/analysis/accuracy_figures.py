"""The accuracy metrics of a case: the worst of each figure over its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.inaccuracy import evidence_of
from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy

#: Why outputs without any difference have no signal to noise ratio.
EXACT = "exact: no difference from the reference"

_FIGURES = (
    "accuracy_max_abs",
    "accuracy_cosine",
    "accuracy_sqnr",
    "accuracy_slices",
    "accuracy_top1",
)
_FLOATS = ("float", "class")


def add_accuracy(collector: Collector, result: CaseResult, *, failed: str = "") -> None:
    """Add the figures of all outputs.

    Of outputs that hold NaN or infinity that alone is said, and of outputs that can't be compared
    with a reference only why: figures of the rest would pass for figures of the whole.

    Args:
        collector: Where they go.
        result: The case.
        failed: Why the case has no numbers at all; empty if it has.
    """
    evidence = evidence_of(result)
    accuracy = result.accuracy
    outputs = accuracy.outputs if accuracy is not None else ()
    if evidence.nonfinite or any(output.adds_nonfinite for output in outputs):
        collector.add("accuracy_finite", 0.0)
        where = evidence.nonfinite or "in the compared runs"
        collector.reject(_FIGURES, f"outputs hold NaN or infinity: {where}")
        return
    if accuracy is None or not accuracy.outputs or evidence.missing:
        why = failed if accuracy is None or not (accuracy.outputs or accuracy.reason) else ""
        collector.reject(("accuracy_finite", *_FIGURES), why or evidence.missing)
        return
    _add_worst(collector, accuracy)
    _add_agreement(collector, accuracy.outputs)
    if any(output.kind in _FLOATS for output in accuracy.outputs) and all(
        map(is_equal, accuracy.outputs)
    ):
        collector.add_infinite("accuracy_sqnr", reason=EXACT)


def is_equal(output: OutputAccuracy) -> bool:
    """Whether an output has the values of the reference, whatever their type; never with NaN."""
    if not output.finite:
        return False
    if output.kind in _FLOATS:
        return output.sqnr_db is None and (output.exact or output.max_abs == 0)
    return output.exact or (output.agree is not None and output.agree == output.rows)


def _add_worst(collector: Collector, accuracy: Accuracy) -> None:
    outputs = accuracy.outputs

    def worst(values: Sequence[float | None], pick: Callable[[list[float]], float]) -> float | None:
        known = [value for value in values if value is not None]
        return pick(known) if known else None

    figures = {
        "accuracy_finite": (1.0, ""),
        "accuracy_max_abs": (
            worst([output.max_abs for output in outputs], max),
            "no numeric output",
        ),
        "accuracy_cosine": (
            worst([output.cosine for output in outputs], min),
            "no output with a direction",
        ),
        "accuracy_sqnr": (
            worst([output.sqnr_db for output in outputs], min),
            _why_no_sqnr(outputs),
        ),
        "accuracy_slices": (
            worst([output.slices.sqnr_db for output in outputs if output.slices], min),
            "no output has channels that are much smaller than its others and differ",
        ),
    }
    for name, (value, reason) in figures.items():
        collector.add(name, value, reason=reason, samples=accuracy.samples)


def _why_no_sqnr(outputs: Sequence[OutputAccuracy]) -> str:
    floats = [output for output in outputs if output.kind in _FLOATS]
    if not floats:
        return "no float output"
    if not all(map(is_equal, floats)):
        return "the reference holds no finite value other than zero"
    differing = next((output for output in outputs if not is_equal(output)), None)
    if differing is None:
        return EXACT
    differences = (differing.rows or 0) - (differing.agree or 0)
    return (
        f"float outputs are exact, but {differences} of {differing.rows} values of "
        f"{differing.name} differ"
    )


def _add_agreement(collector: Collector, outputs: Sequence[OutputAccuracy]) -> None:
    """Top-1 agreement of the worst class-like output, with its exact binomial interval."""
    counted = [
        (output.agree, output.rows)
        for output in outputs
        if output.kind == "class" and output.agree is not None and output.rows
    ]
    if not counted:
        collector.add("accuracy_top1", None, reason="no output that looks like classes")
        return
    agree, rows = min(counted, key=lambda pair: pair[0] / pair[1])
    low, high = proportion_interval(agree, rows)
    collector.add("accuracy_top1", agree / rows, low=low, high=high, samples=rows)
