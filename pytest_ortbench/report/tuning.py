"""Cases whose provider searched for the fastest way beside those whose did not, as a table.

The search is in the creation of the session or in the first inference, which no timed block holds:
what it took is both with it less both without.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_ortbench.analysis.precisions import PrecisionRatio, ratio_between
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import PassTable

_KNOB = "tuning"
_HEADINGS = ("case", "untuned p50", "tuned p50", "ratio", "tuning took", "pays after")


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedPair:
    """A case with the search, and the same case without.

    Attributes:
        name: Id of the case without the knob.
        on: With the search.
        off: Without.
        latency: Median with ÷ without; ``None`` where a side has none.
        search_s: What it took longer to the first answer; ``None`` where a side timed none.
        pays_after: Inferences after which the search has paid; ``None`` where it never does, the
            two medians can't be told apart, or no search was seen to take time.
    """

    name: str
    on: Summary
    off: Summary
    latency: PrecisionRatio | None
    search_s: float | None
    pays_after: int | None


def tuned_pairs(summaries: tuple[Summary, ...] | list[Summary]) -> list[TunedPair]:
    """Return the measured pairs of a run, in its order."""
    untuned = {_place(one): one for one in summaries if _position(one) == "off"}
    return [
        _pair(one, untuned[_place(one)])
        for one in summaries
        if _position(one) == "on" and _place(one) in untuned
    ]


def _position(summary: Summary) -> str:
    return summary.case.knobs.get(_KNOB, "") if summary.status == "measured" else ""


def _place(summary: Summary) -> tuple[str, str]:
    """What a case is without the knob: its id and its runtime."""
    case_id, runtime = summary.case.key
    position = summary.case.knobs.get(_KNOB, "")
    return case_id.replace(f"/{_KNOB}:{position}", ""), runtime


def _pair(on: Summary, off: Summary) -> TunedPair:
    latency = ratio_between(off, on, "latency_p50")
    searching, plain = _answered_s(on), _answered_s(off)
    search_s = None if searching is None or plain is None else searching - plain
    pays_after = None
    is_faster = latency is not None and not latency.tie and latency.value < 1
    if is_faster and search_s is not None and search_s > 0:
        gain_s = off.quantities["latency_p50"].value - on.quantities["latency_p50"].value
        pays_after = math.ceil(search_s / gain_s)
    return TunedPair(
        name=_place(on)[0],
        on=on,
        off=off,
        latency=latency,
        search_s=search_s,
        pays_after=pays_after,
    )


def _answered_s(summary: Summary) -> float | None:
    """How long a session takes from nothing to its first answer."""
    steps = [summary.quantities.get(name) for name in ("session_create", "first_inference")]
    return sum(step.value for step in steps if step is not None) if all(steps) else None


def tuning_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return one table of all pairs of a run; none where there are none."""
    pairs = tuned_pairs(list(shown.summaries))
    if not pairs:
        return ()
    return (PassTable(title="tuning", headings=_HEADINGS, rows=tuple(map(_row, pairs))),)


def _search(took_s: float | None) -> str:
    """What a search took; one that is lost in noise was not seen to take anything."""
    if took_s is None:
        return "-"
    return format_amount(took_s, "s") if took_s > 0 else "not seen"


def _row(pair: TunedPair) -> tuple[str, ...]:
    off, on = (one.quantities.get("latency_p50") for one in (pair.off, pair.on))
    ratio = pair.latency
    tie = " (a tie)" if ratio is not None and ratio.tie else ""
    return (
        one_line(pair.name),
        "-" if off is None else format_amount(off.value, "s"),
        "-" if on is None else format_amount(on.value, "s"),
        "-" if ratio is None else f"×{significant(ratio.value)}{tie}",
        _search(pair.search_s),
        "-" if pair.pays_after is None else f"{pair.pays_after} inferences",
    )
