"""Rows of cases and columns of sides: numbers, ratios to the baseline, winners, ties and holes.

Winners are named only among cells that may be compared: measured, without a flag that bars them,
fed with the same inputs, from the same model file. A gap inside the intervals is a tie; between
different runs, so is a gap of less than five per cent in a time, since sequential measurements of
identical code were seen to differ that much. Single processes of one run (``ONE-WORKER``) count as
different runs there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.facts import CaseFacts
from pytest_ortbench.fleet.numbers.ratios import Ratio, apart, geometric_mean, interval, ratio
from pytest_ortbench.fleet.numbers.sides import Layout, Placed, Side, workload_parts

#: A ratio closer to 1 than this is no difference: what block medians of shared machines can hold.
MARGIN = 0.05

#: Exact metrics (sizes) and those that hardly vary between launches.
MARGINS: dict[str, float] = {
    "model_size": 0.0,
    "peak_rss": 0.02,
    "process_peak_rss": 0.02,
    "session_rss": 0.02,
}

#: Why a cell is empty although nothing failed.
ABSENT = "not measured there"
#: The same of a machine that did that work with another precision, provider or setting.
OTHERWISE = "measured in another way there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One case of one side.

    Attributes:
        case: The case; ``None`` where the side has none.
        run_id: Run that it comes from.
        quantity: Its number, also where it must not be compared.
        reason: Why it is a hole or must not be compared; empty otherwise.
        ratio: To the baseline's cell of the same row; ``None`` where either can't be compared.
        differs: Whether it can be told from the baseline.
        best: Whether nothing in its row is better.
        tie: Whether it can't be told from the best one of its row, without being it.
        variant: How the case does its work (``fp16/cuda``), where sides choose for themselves.
        withheld: Whether it is never called the best: precisions differ, and its answers
            need real inputs or labels first.
        faster: The best of its side that is withheld, where that goes before it.
    """

    case: CaseFacts | None = None
    run_id: str = ""
    quantity: Quantity | None = None
    reason: str = ABSENT
    ratio: Ratio | None = None
    differs: bool = False
    best: bool = False
    tie: bool = False
    variant: str = ""
    withheld: bool = False
    faster: Cell | None = None

    @property
    def comparable(self) -> bool:
        """Whether it has a number that may be compared."""
        return self.quantity is not None and not self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The same case on every side.

    Attributes:
        model: Name of its model.
        label: What is fed: ``b8/seq:128``.
        cells: One a side, in their order.
        batch: The batch, where the label says nothing else.
    """

    model: str
    label: str
    cells: tuple[Cell, ...]
    batch: int | None = None

    @property
    def whole(self) -> bool:
        """Whether every side has a number that may be compared."""
        return all(cell.comparable for cell in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """One side over all rows.

    Attributes:
        ratio: Geometric mean of its ratios over the rows that all sides have; ``None`` without.
        best: Whether no side is better.
        tie: Whether it can't be told from the best one.
        cells: Rows in which it has a number that may be compared.
    """

    ratio: Ratio | None
    best: bool = False
    tie: bool = False
    cells: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A comparison in one metric.

    Attributes:
        metric: Name of the metric.
        sides: Its columns.
        baseline: Index of the one that ratios refer to.
        rows: Its rows.
        overall: One entry a side.
        common: Number of rows that every side has.
    """

    metric: str
    sides: tuple[Side, ...]
    baseline: int
    rows: tuple[Row, ...]
    overall: tuple[Overall, ...]
    common: int


def by_case(layout: Layout, metric: str, *, baseline: int = 0) -> Matrix:
    """Compare case by case: the same precision, provider and settings in each row."""
    rows: dict[tuple[object, ...], dict[str, Placed]] = {}
    for placed_case in layout.placed:
        rows.setdefault(placed_case.row, {})[placed_case.side] = placed_case
    sides_of: dict[tuple[object, ...], dict[str, None]] = {}
    for placed_case in layout.placed if layout.axis == "machine" else ():
        sides_of.setdefault(placed_case.case.workload, {})[placed_case.side] = None

    def cells_of(members: Mapping[str, Placed]) -> dict[str, Cell]:
        others = sides_of.get(next(iter(members.values())).case.workload, {})
        own = {side: _cell(placed_case, metric) for side, placed_case in members.items()}
        return {side: Cell(reason=OTHERWISE) for side in others} | own

    return _matrix(
        layout,
        metric,
        baseline,
        [
            _row(
                layout,
                metric,
                baseline,
                next(iter(members.values())).case.model,
                layout.labels[key],
                cells_of(members),
            )
            for key, members in rows.items()
        ],
    )


def by_workload(layout: Layout, metric: str, *, baseline: int = 0) -> Matrix:
    """Compare what each side does best: its best comparable variant for each workload."""
    rows: dict[tuple[object, ...], dict[str, list[Placed]]] = {}
    for placed_case in layout.placed:
        rows.setdefault(placed_case.case.workload, {}).setdefault(placed_case.side, []).append(
            placed_case
        )
    made: list[Row] = []
    for members in rows.values():
        first = next(iter(members.values()))[0].case
        precisions = {
            placed.case.precision for placed_cases in members.values() for placed in placed_cases
        }
        cells = {
            side: _best_of(placed_cases, metric, axis=layout.axis, several=len(precisions) > 1)
            for side, placed_cases in members.items()
        }
        parts = workload_parts(first)
        row = _row(layout, metric, baseline, first.model, "/".join(parts), cells)
        made.append(replace(row, batch=first.batch if len(parts) == 1 else None))
    return _matrix(layout, metric, baseline, made)


def _cell(placed_case: Placed, metric: str, *, variant: str = "") -> Cell:
    quantity = placed_case.case.quantities.get(metric)
    reason = placed_case.case.reason
    if not reason and METRICS[metric].unit in ("W", "J"):
        reason = placed_case.case.power_reason
    if quantity is None and not reason:
        reason = f"no {metric}"
    return Cell(
        case=placed_case.case,
        run_id=placed_case.run.run_id,
        quantity=quantity,
        reason=reason,
        variant=variant,
    )


def variant_label(case: CaseFacts, *, runtime: bool = False) -> str:
    """Name how a case does its work: ``fp16/cuda``, with settings beyond the workload.

    Args:
        case: The case.
        runtime: Whether to name the runtime, too.
    """
    shown = {part.partition(":")[0] for part in workload_parts(case)}
    knobs = [f"{name}:{value}" for name, value in case.knobs if name not in shown and name != "io"]
    where = f"+{case.runtime}" if runtime else ""
    name = case.variant or "/".join([case.precision, case.provider, *knobs]) + where
    name += "" if case.variant else case.role_note
    return f"{name} in {case.processes} processes" if case.processes > 1 else name


def _best_of(placed: Sequence[Placed], metric: str, *, axis: str, several: bool) -> Cell:
    """The best cell that may be compared, else the first hole with its reason.

    Where several precisions are there, one that may be recommended goes before the others.
    """
    runtimes = len({placed_case.case.runtime for placed_case in placed}) > 1
    cells = [
        _cell(
            placed_case,
            metric,
            variant=variant_label(
                # A side that is an engine is called so itself.
                replace(placed_case.case, role="") if axis == "provider" else placed_case.case,
                runtime=runtimes,
            ),
        )
        for placed_case in placed
    ]
    usable = [
        replace(cell, withheld=several and cell.case is not None and cell.case.needs is not None)
        for cell in cells
        if cell.comparable
    ]
    if not usable:
        return cells[0]
    sign = -1 if _higher(metric) else 1
    first = min(usable, key=lambda cell: sign * _value(cell))
    best = min(usable, key=lambda cell: (cell.withheld, sign * _value(cell)))
    return best if best is first else replace(best, faster=first)


def _value(cell: Cell) -> float:
    assert cell.quantity is not None  # callers keep only cells that have one
    return cell.quantity.value


def _row(
    layout: Layout,
    metric: str,
    baseline: int,
    model: str,
    label: str,
    cells_of: Mapping[str, Cell],
) -> Row:
    names = [side.label for side in layout.sides]
    cells = [cells_of.get(name, Cell()) for name in names]
    cells = _without_strangers(cells, baseline, layout.axis)
    ranges = [_range(cell, metric) for cell in cells]
    cells = [
        _against(cell, span, cells[baseline], ranges[baseline], metric)
        for cell, span in zip(cells, ranges, strict=True)
    ]
    values = [cell.quantity.value if cell.quantity else 0.0 for cell in cells]
    origins = [_origin(cell) for cell in cells]
    ranked = [None if cell.withheld else span for cell, span in zip(cells, ranges, strict=True)]
    marks = rank(values, ranked, origins, higher=_higher(metric), margin=margin_of(metric))
    return Row(
        model=model,
        label=label,
        cells=tuple(
            replace(cell, best=mark == "best", tie=mark == "tie")
            for cell, mark in zip(cells, marks, strict=True)
        ),
    )


def _without_strangers(cells: Sequence[Cell], baseline: int, axis: str) -> list[Cell]:
    """Bar cells that were fed otherwise, or with another model file, than the reference.

    The reference is the baseline, or the first side that has a number. Over time the model is what
    may have changed, so there another file is no bar.
    """
    usable = [cell for cell in cells if cell.comparable]
    if not usable:
        return list(cells)
    first = cells[baseline] if cells[baseline].comparable else usable[0]
    reference = first.case
    assert reference is not None  # comparable cells have a case
    return [
        cell
        if not cell.comparable or cell.case is None
        else replace(cell, reason=_strange(cell.case, reference, axis))
        for cell in cells
    ]


def _strange(case: CaseFacts, reference: CaseFacts, axis: str) -> str:
    if case.inputs != reference.inputs:
        return "SHAPES: inputs differ from those of the baseline"
    if axis != "time" and case.digest != reference.digest:
        return "another model file under this name"
    if case.provider == reference.provider and case.software != reference.software:
        ours, theirs = (", ".join(side.software) or "hardware" for side in (case, reference))
        return f"DEVICE: {ours}, where the baseline has {theirs}"
    return ""


def _range(cell: Cell, metric: str) -> tuple[float, float] | None:
    if not cell.comparable or cell.quantity is None or cell.case is None:
        return None
    blurred = bool(cell.case.blurred_by) and is_timed(metric)
    return interval(cell.quantity, blurred=blurred)


def is_timed(metric: str) -> bool:
    """Whether a metric varies with what else the machine does."""
    return METRICS[metric].unit in ("s", "1/s", "W", "J")


def margin_of(metric: str) -> float:
    """Return the least difference between two runs that counts, as a share."""
    return MARGINS.get(metric, MARGIN)


def _origin(cell: Cell) -> str:
    """Where a number comes from: its run, or the one process that is all its run knows of it."""
    if cell.case is not None and cell.case.one_worker:
        return f"{cell.run_id} {cell.case.case_id} {cell.case.runtime}"
    return cell.run_id


def _against(
    cell: Cell,
    span: tuple[float, float] | None,
    base: Cell,
    base_span: tuple[float, float] | None,
    metric: str,
) -> Cell:
    if span is None or base_span is None or cell.quantity is None or base.quantity is None:
        return cell
    if cell is base:
        return replace(cell, ratio=Ratio(value=1.0))
    margin = margin_of(metric) if _origin(cell) != _origin(base) else 0.0
    return replace(
        cell,
        ratio=ratio(cell.quantity, base.quantity),
        differs=apart(span, base_span, margin=margin),
    )


def rank(
    values: Sequence[float],
    spans: Sequence[tuple[float, float] | None],
    origins: Sequence[str],
    *,
    higher: bool = False,
    margin: float = 0.0,
) -> list[str]:
    """Mark numbers as ``best``, ``tie`` (can't be told from it) or neither.

    Args:
        values: The numbers.
        spans: Low and high of each; ``None`` is not ranked.
        origins: Where each comes from.
        higher: Whether a large number is a good one.
        margin: Least difference that counts between different origins, as a share.
    """
    sign = -1 if higher else 1
    known = [index for index, span in enumerate(spans) if span is not None]
    marks = [""] * len(spans)
    if len(known) < 2:
        return marks
    best = min(known, key=lambda index: sign * values[index])
    best_span = spans[best]
    assert best_span is not None
    for index in known:
        least = margin if origins[index] != origins[best] else 0.0
        if index == best:
            marks[index] = "best"
        elif not apart(spans[index] or best_span, best_span, margin=least):
            marks[index] = "tie"
    return marks


def _higher(metric: str) -> bool:
    return METRICS[metric].better == "higher"


def _matrix(layout: Layout, metric: str, baseline: int, rows: Sequence[Row]) -> Matrix:
    whole = [row for row in rows if row.whole]
    means = [_mean(whole, index) for index in range(len(layout.sides))]
    spans = [
        None
        if mean is None or any(row.cells[index].withheld for row in rows)
        else (
            mean.value if mean.low is None else mean.low,
            mean.value if mean.high is None else mean.high,
        )
        for index, mean in enumerate(means)
    ]
    runs = [" ".join(run.run_id for run in side.runs) for side in layout.sides]
    values = [mean.value if mean else 0.0 for mean in means]
    marks = rank(values, spans, runs, higher=_higher(metric), margin=margin_of(metric))
    return Matrix(
        metric=metric,
        sides=layout.sides,
        baseline=baseline,
        rows=tuple(rows),
        overall=tuple(
            Overall(
                ratio=mean,
                best=mark == "best",
                tie=mark == "tie",
                cells=sum(row.cells[index].comparable for row in rows),
            )
            for index, (mean, mark) in enumerate(zip(means, marks, strict=True))
        ),
        common=len(whole),
    )


def _mean(rows: Sequence[Row], index: int) -> Ratio | None:
    """The geometric mean of one side; ``None`` unless all of these rows have a ratio."""
    ratios = [row.cells[index].ratio for row in rows]
    known = [factor for factor in ratios if factor is not None]
    return geometric_mean(known) if len(known) == len(rows) else None
