"""What a model has to do in one run, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_ortbench.core.arithmetic import ModelWork
from pytest_ortbench.core.units import format_amount, significant

#: Prefixes of counts, as of hertz.
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
#: Operators that are named before the rest is counted.
_NAMED = 6


def work_facts(work: ModelWork) -> Iterator[tuple[str, str]]:
    """Yield what is counted, and then what is not, each as a name and a text."""
    if work.macs is not None:
        least = "" if work.complete else "at least "
        yield "arithmetic", f"{least}{format_count(work.macs)} multiply-accumulates"
    if work.macs is not None and work.activation_bytes is not None:
        least = "at least " if any(node.activation_bytes is None for node in work.nodes) else ""
        weights = format_amount(work.weight_bytes, "bytes")
        moved = f"{least}{format_amount(work.activation_bytes, 'bytes')}"
        yield "memory traffic", f"{weights} of weights, {moved} of activations read and written"
    if work.uncounted:
        yield "uncounted", counted_operators(work.uncounted, _NAMED)
    elif work.reason:
        yield "uncounted", work.reason


def format_count(number: float) -> str:
    """Return a large count for people: ``4.09 G``."""
    for factor, prefix in _SCALES:
        # Rounding can carry into the next prefix: 999,960 is 1.00 M.
        if float(significant(number / factor)) >= 1:
            return f"{significant(number / factor)} {prefix}"
    return significant(number) if number % 1 else str(int(number))


def counted_operators(counts: Mapping[str, int], most: int) -> str:
    """Return the most frequent operators, ``3 Conv, 2 Relu``, and how many others there are."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{count} {op}" for op, count in ranked[:most])
    more = len(ranked) - most
    return f"{shown} and {more} more types" if more > 0 else shown
