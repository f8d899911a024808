"""A comparison in plain sentences: the one source for terminal, Markdown and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.sentences import (
    batch_list,
    first_names,
    one_worker_words,
    tie_text,
    verdicts,
    with_interval,
)
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.flags import FLAGS, ONE_WORKER
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import significant
from pytest_ortbench.fleet.numbers.evenness import (
    are_sides_even,
    doubt_words,
    mean_ratio,
    single_cells,
    single_sides,
)
from pytest_ortbench.fleet.numbers.matrix import Cell, Matrix, Row
from pytest_ortbench.fleet.numbers.ratios import ratio
from pytest_ortbench.fleet.numbers.same_machine import same_machine_texts
from pytest_ortbench.fleet.numbers.shipping import shipped
from pytest_ortbench.fleet.numbers.sides import differing_sets, machine_names
from pytest_ortbench.fleet.numbers.words import metric_words, words_of

#: Workloads that are spelt out; the table has the rest.
SPELT_OUT = 8
#: Names in a list.
NAMED = 3

#: What the best of a metric is called, and how it compares with another.
_WORDS = {"s": ("fastest", "faster than"), "1/s": ("highest", "that of")}

#: Public measurements of many units of one GPU model: mean and largest difference between units.
UNIT_SPREAD = (0.08, 0.22)

ONE_UNIT = (
    "Each hardware model was measured on one unit. In published measurements of GPUs, units of one "
    "model differed by 8 % on average and by up to 22 %. Ask to test the unit that you will get."
)


def conclusions(
    best: Matrix, cases: Matrix, axis: str = "machine", answers: Sequence[ModelAnswer] = ()
) -> list[Told]:
    """Say what to ship for each model, which side is best over all, and then for each workload.

    Args:
        best: What each side does best, by workload.
        cases: The same comparison case by case.
        axis: What the sides are.
        answers: Those of the one run that is compared with itself, whose report says the same;
            none where several runs are compared.
    """
    own = [
        Told(told.before, told.winner, told.after, about=told.about, lead=True)
        for answer in answers
        for told in verdicts(answer)
    ]
    sentences = [*(own or shipped(best, axis)), best_overall(best, cases)]
    ranked = [row for row in best.rows if any(cell.best for cell in row.cells)]
    sentences += [_workload(row, best) for row in ranked[:SPELT_OUT]]
    if len(ranked) > SPELT_OUT:
        sentences.append(Told(f"and {len(ranked) - SPELT_OUT} further workloads: see the table"))
    sentences += _alone(best)
    return sentences


def best_overall(best: Matrix, cases: Matrix) -> Told:
    """Say which side is best over all that every side has, how far ahead, and where it is not."""
    # Case by case is the fairer question; where no case is common, each side's best has to do.
    matrix, noun = (cases, "cases") if cases.common else (best, "workloads")
    metric = metric_words(matrix.metric)
    if not matrix.common:
        return _about_all(
            f"no case has a number on every side, so no mean can be computed{_culprit(cases)}"
        )
    counted = f"geometric mean of {metric} over the {matrix.common} {noun} that every side has"
    if matrix.common == 1:
        counted = f"{metric} of the one {noun.removesuffix('s')} that every side has"
    winner = next((i for i, mean in enumerate(matrix.overall) if mean.best), None)
    if winner is None:
        return _about_all(_no_mean(matrix))
    single = [matrix.sides[index].label for index in single_sides(matrix)]
    if single:
        return _about_all(f"no clear best: {one_worker_words(single)}")
    level = [index for index, mean in enumerate(matrix.overall) if mean.tie]
    name = matrix.sides[winner].label
    tail = f", {counted}{_exceptions(best, {winner, *level})}{doubt_words(matrix)}"
    rest = [
        index
        for index, mean in enumerate(matrix.overall)
        if index != winner and index not in level and mean.ratio is not None
    ]
    if level:
        names = batch_list([matrix.sides[index].label for index in sorted({winner, *level})])
        if not are_sides_even(matrix, winner, level):
            return _about_all(f"no clear best: {names} can't be told apart, too noisy{tail}")
        behind = _behind(matrix, winner, rest) if rest else ""
        gap = f"; {behind} as {name}" if behind else ""
        return _about_all(f"no clear best: {names} are alike{gap}{tail}")
    behind = _behind(matrix, winner, rest)
    word, _ = words_of(matrix.metric)
    is_best = f" is {word}" if word == "fastest" else f" has the {word}"
    return _about_all("", name, f"{is_best}{'; ' if behind else ''}{behind}{tail}")


def _no_mean(matrix: Matrix) -> str:
    """Say whose numbers have no ratio, or one that no geometric mean can hold."""
    names = [
        side.label
        for index, side in enumerate(matrix.sides)
        if any(_value(row.cells[index]) <= 0 for row in matrix.rows if row.whole)
    ]
    has = "has a value that is" if len(names) == 1 else "have values that are"
    return f"no mean of the ratios can be computed, because {first_names(names)} {has} not above 0"


def _about_all(before: str, winner: str = "", after: str = "") -> Told:
    return Told(before, winner, after, about="overall: ")


def _behind(matrix: Matrix, winner: int, others: Sequence[int]) -> str:
    """``b takes ×1.50 [×1.38, ×1.63] as long``: the nearest of some sides, against the winner."""
    higher = METRICS[matrix.metric].better == "higher"
    followers = []
    for index in others:
        mean = mean_ratio(matrix, winner, index)
        if mean is not None:
            followers.append((mean.value * (-1 if higher else 1), index, mean))
    if not followers:
        return ""
    _, index, mean = min(followers, key=lambda follower: follower[:2])
    name, factor = matrix.sides[index].label, mean.text
    takes = f"takes {factor} as long" if _is_time(matrix) else f"has {factor} as much"
    return f"the next one, {name}, {takes}"


def _is_time(matrix: Matrix) -> bool:
    return METRICS[matrix.metric].unit == "s"


def _exceptions(best: Matrix, winners: set[int]) -> str:
    """Workloads that another side wins: the mean over all hides them."""
    rows_of: dict[str, list[str]] = {}
    for row in best.rows:
        if any(row.cells[index].best or row.cells[index].tie for index in winners):
            continue
        first = next((index for index, cell in enumerate(row.cells) if cell.best), None)
        if first is not None:
            rows_of.setdefault(best.sides[first].label, []).append(f"{row.model} {row.label}")
    exceptions = [f"{first_names(rows)} ({side})" for side, rows in rows_of.items()]
    return f"; except {first_names(exceptions)}" if exceptions else ""


def _culprit(cases: Matrix) -> str:
    """Which side is the emptiest, and what would be left without it."""
    if len(cases.sides) < 3:
        return ""
    emptiest = min(range(len(cases.sides)), key=lambda index: cases.overall[index].cells)
    left = sum(
        all(cell.comparable for index, cell in enumerate(row.cells) if index != emptiest)
        for row in cases.rows
    )
    return f"; without {cases.sides[emptiest].label} there would be {left} cases" if left else ""


def _workload(row: Row, matrix: Matrix) -> Told:
    index = next(index for index, cell in enumerate(row.cells) if cell.best)
    cell = row.cells[index]
    unit = METRICS[matrix.metric].unit
    word, relation = _WORDS.get(unit, ("best", "that of"))
    with_variant = f" with {cell.variant}" if cell.variant else ""
    text = f", {metric_words(matrix.metric)} {_number(cell)}"
    ties = [
        matrix.sides[other].label + (f" ({tied.variant})" if tied.variant else "")
        for other, tied in enumerate(row.cells)
        if tied.tie
    ]
    # What can't be told from others is not said to be ahead.
    text += tie_text(ties) if ties else _against(row, matrix, index, relation)
    text += _blur(cell, row, matrix.metric)
    winner = f"{matrix.sides[index].label}{with_variant}"
    return Told(f"{word} ", winner, text, about=f"{row.model} {row.label}: ")


def _against(row: Row, matrix: Matrix, index: int, relation: str) -> str:
    """The factor against the baseline; against the runner-up where the winner is the baseline."""
    best = row.cells[index]
    others = [
        other
        for other, cell in enumerate(row.cells)
        if other != index and cell.comparable and not cell.tie
    ]
    if not others or best.quantity is None:
        return ""
    higher = METRICS[matrix.metric].better == "higher"
    sign = -1 if higher else 1
    other = (
        matrix.baseline
        if matrix.baseline in others
        else min(others, key=lambda position: sign * _value(row.cells[position]))
    )
    theirs = row.cells[other]
    if theirs.quantity is None:
        return ""
    pair = (theirs.quantity, best.quantity)
    factor = ratio(*(reversed(pair) if higher else pair))
    if factor is None:
        return ""
    variant = f" ({theirs.variant})" if theirs.variant else ""
    words = relation if METRICS[matrix.metric].unit in _WORDS else "better than"
    return f", {factor.text} {words} {matrix.sides[other].label}{variant}"


def _value(cell: Cell) -> float:
    return cell.quantity.value if cell.quantity else 0.0


def _number(cell: Cell) -> str:
    return with_interval(cell.quantity) if cell.quantity else ""


def _blur(cell: Cell, row: Row, metric: str) -> str:
    names = [*(cell.case.blurred_by if cell.case else ())]
    names += [ONE_WORKER] if single_cells(row, metric) else []
    return f" ({', '.join(names)})" if names else ""


def _alone(matrix: Matrix) -> list[Told]:
    """Workloads that one side alone has: no comparison, but not to be hidden either."""
    alone = [
        row
        for row in matrix.rows
        if sum(cell.comparable for cell in row.cells) == 1 and len(row.cells) > 1
    ]
    none = [row for row in matrix.rows if not any(cell.comparable for cell in row.cells)]
    sentences = []
    if alone:
        sentences.append(Told(f"not ranked, because only one side has a number: {_names(alone)}"))
    if none:
        sentences.append(Told(f"no side has a number that can be compared: {_names(none)}"))
    return sentences


def _names(rows: Sequence[Row]) -> str:
    return first_names([f"{row.model} {row.label}" for row in rows])


def warnings(
    matrix: Matrix, axis: str, replaced: int, runtimes: Mapping[str, str] | None = None
) -> list[str]:
    """Say what a reader of the comparison must mind.

    Args:
        matrix: The comparison case by case.
        axis: What the sides are.
        replaced: How many older measurements were left out.
        runtimes: What each machine runs, where rows pair across different runtimes.
    """
    sentences: list[str] = []
    if axis == "machine" and len(matrix.sides) > 1:
        sentences += same_machine_texts([run for side in matrix.sides for run in side.runs])
        sentences.append(ONE_UNIT)
    run_ids = {run.run_id for side in matrix.sides for run in side.runs}
    if axis in ("time", "runtime") and len(run_ids) > 1:
        sentences.append(
            "These runs were made at different times on a shared machine, so a difference below "
            "5 % in a time counts as no difference. To decide about a change, measure both "
            "sides in one run (--ort-against)."
        )
    if runtimes:
        named = "; ".join(f"{text} on {name}" for name, text in runtimes.items())
        sentences.append(
            f"The machines run different runtimes ({named}), so a difference between them may come "
            "from the runtime."
        )
    if replaced == 1:
        sentences.append("An older measurement of a case that was measured again is not shown.")
    elif replaced:
        sentences.append(
            f"{replaced} older measurements of cases that were measured again are not shown."
        )
    return [
        *sentences,
        *_instruction_sets(matrix),
        *_blurred_sides(matrix),
        *_failed_checks(matrix),
        *_machine_drift(matrix, axis),
    ]


def _instruction_sets(matrix: Matrix) -> list[str]:
    """Name the instruction sets that the machines differ in, and which of them have each."""
    runs = [run for side in matrix.sides for run in side.runs]
    machines = dict(zip(machine_names(runs), (run.machine for run in runs), strict=True))
    by_machines: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in differing_sets(machines):
        by_machines.setdefault((each.on, each.off), []).append(each.name)
    if not by_machines:
        return []
    texts = [
        f"{', '.join(names)} on {first_names(list(on), 4)} and not on {first_names(list(off), 4)}"
        for (on, off), names in by_machines.items()
    ]
    return [
        f"The CPUs differ in instruction sets ({'; '.join(texts)}), which decide what kernels run: "
        "int8 and half precision may gain on one machine and lose on another."
    ]


def _failed_checks(matrix: Matrix) -> list[str]:
    """Where a self-check failed, numbers of that kind may be wrong."""
    failed = [
        f"{run.host} {check}"
        for run in {run.run_id: run for side in matrix.sides for run in side.runs}.values()
        for check in run.failed_checks
    ]
    if not failed:
        return []
    named = first_names(list(dict.fromkeys(failed)), 6)
    return [f"Lines of a self-check failed there, so such numbers may be wrong: {named}."]


def _blurred_sides(matrix: Matrix) -> list[str]:
    """Name the flags that make numbers uncertain, the sides that have them, and what mends it."""
    sides: dict[str, Counter[str]] = {}
    for row in matrix.rows:
        for side, cell in zip(matrix.sides, row.cells, strict=True):
            for flag in cell.case.blurred_by if cell.case else ():
                sides.setdefault(flag, Counter())[side.label] += 1
    texts = []
    for flag, names in sides.items():
        where = ", ".join(
            f"{name} ({count} case{'s' * (count != 1)})" for name, count in names.items()
        )
        texts.append(
            f"Less certain, {flag} on {where}: {FLAGS[flag].meaning}. {FLAGS[flag].advice}"
        )
    return texts


def _machine_drift(matrix: Matrix, axis: str) -> list[str]:
    """Where the canary moved, the machine did, and not only the code."""
    if axis != "time":
        return []
    base = matrix.sides[matrix.baseline]
    known = base.runs[0].canary_s if base.runs else None
    if not known:
        return []
    moved = [
        f"{side.label} ×{significant(canary / known)}"
        for side in matrix.sides
        if side is not base
        and side.runs
        and (canary := side.runs[0].canary_s)
        and abs(canary / known - 1) > 0.05
    ]
    if not moved:
        return []
    return [
        "The latency of the canary (a fixed reference model) changed, so the machine changed and "
        "not only the code: " + first_names(moved, 6) + "."
    ]
