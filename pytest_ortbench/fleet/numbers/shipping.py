"""Which variant to ship on which side, for each model: the first sentences of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ortbench.analysis.proof import lack_words
from pytest_ortbench.analysis.sentences import batch_list, one_worker_words
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import significant
from pytest_ortbench.fleet.numbers.evenness import are_cells_even, single_cells
from pytest_ortbench.fleet.numbers.matrix import Cell, Matrix, Row
from pytest_ortbench.fleet.numbers.ratios import ratio
from pytest_ortbench.fleet.numbers.words import metric_words, words_of

#: Models that are spelt out; the table has the rest.
MODELS = 8

#: How a side is called behind a variant; where the variant says it already, not at all.
_WHERE = {"machine": " on {}", "runtime": " on {}", "time": " of {}"}

#: Precisions whose outputs are the reference, or as near to it as another kernel is.
_AS_GIVEN = ("native", "fp32")

#: A side and how it does the work there.
_Choice = tuple[int, str]


def shipped(best: Matrix, axis: str) -> list[Told]:
    """Say for each model what to ship, over all of its workloads that can be compared.

    Of those that are the fastest, or can't be told from it, the one that is so in most workloads
    is chosen; then the one that wins most outright; then the one on the earlier side.

    Args:
        best: What each side does best, by workload.
        axis: What the sides are: a key of ``AXES``.
    """
    models: dict[str, list[Row]] = {}
    for row in best.rows:
        if any(cell.best for cell in row.cells):
            models.setdefault(row.model, []).append(row)
    sentences = [_model(name, rows, best, axis) for name, rows in list(models.items())[:MODELS]]
    sentences += _not_yet(best, axis)
    if len(models) > MODELS:
        sentences.append(Told(f"and {len(models) - MODELS} further models: see the table"))
    return sentences


def _not_yet(matrix: Matrix, axis: str) -> list[Told]:
    """Name variants that are better and need real inputs or labels first: one a model."""
    sentences: dict[str, Told] = {}
    for row in matrix.rows:
        proven = _first(matrix, [cell if not cell.withheld else None for cell in row.cells])
        unproven = _first(matrix, [cell if cell.withheld else cell.faster for cell in row.cells])
        if row.model in sentences or unproven is None:
            continue
        ahead = "" if proven is None else _lead(unproven[1], proven[1], matrix)
        if proven is not None and not ahead:
            continue  # another one is better without it
        if proven is not None:
            ahead += f" {_called((proven[0], proven[1].variant), matrix, axis)}"
        sentences[row.model] = Told(
            "not recommended yet: ",
            _called((unproven[0], unproven[1].variant), matrix, axis),
            f"{ahead}, {_basis(unproven[1])}",
            about=f"{row.model}: ",
        )
    return list(sentences.values())[:MODELS]


def _basis(cell: Cell) -> str:
    """What its answers were judged on so far, and what to judge them on."""
    case = cell.case
    if case is None or case.needs is None:
        return ""
    return lack_words(case.needs, on_calibration=case.on_calibration)


def _first(matrix: Matrix, cells: Sequence[Cell | None]) -> tuple[int, Cell] | None:
    """The best of some cells with its side; ``None`` where none has a number to compare."""
    sign = -1 if METRICS[matrix.metric].better == "higher" else 1
    known = [
        (sign * cell.quantity.value, index, cell)
        for index, cell in enumerate(cells)
        if cell is not None and cell.comparable and cell.quantity is not None
    ]
    if not known:
        return None
    _, index, cell = min(known, key=lambda entry: entry[:2])
    return index, cell


def _lead(better: Cell, other: Cell, matrix: Matrix) -> str:
    """How far a cell is ahead of another: ``, ×2.1 faster than``; empty where it is not."""
    mine, theirs = better.quantity, other.quantity
    if mine is None or theirs is None:
        return ""
    higher = METRICS[matrix.metric].better == "higher"
    factor = ratio(mine, theirs) if higher else ratio(theirs, mine)
    if factor is None or factor.value <= 1:
        return ""
    return f", ×{factor.text[1:]} {words_of(matrix.metric)[1]}"


def _model(name: str, rows: Sequence[Row], matrix: Matrix, axis: str) -> Told:
    pools = [_pool(row) for row in rows]
    single = dict.fromkeys(
        _called((index, row.cells[index].variant), matrix, axis)
        for row in rows
        for index in single_cells(row, matrix.metric)
    )
    if single:
        told = f"no recommendation: {one_worker_words(list(single))}"
        return Told(told, about=f"{name}: ", lead=True)
    every = dict.fromkeys(choice for pool in pools for choice in pool)
    chosen = min(
        every,
        key=lambda option: (
            -sum(option in pool for pool in pools),
            -sum(option == pool[0] for pool in pools),
            option[0],
        ),
    )
    alone = [row for row, pool in zip(rows, pools, strict=True) if pool == [chosen]]
    tied = [row for row, pool in zip(rows, pools, strict=True) if chosen in pool and len(pool) > 1]
    if not alone and not any(map(are_cells_even, tied)):
        names = batch_list(list(dict.fromkeys(_called(way, matrix, axis) for way in every)))
        flags = dict.fromkeys(
            flag for row in tied for cell in row.cells if cell.tie or cell.best
            for flag in _blurred(cell)
        )  # fmt: skip
        noise = f"too noisy ({', '.join(flags)})" if flags else "too noisy"
        told = f"no recommendation: {names} can't be told apart, {noise}"
        return Told(told, about=f"{name}: ", lead=True)
    several = len(rows) > 1
    word, _ = words_of(matrix.metric)
    why: list[str] = []
    if alone:
        why.append(f"{word}{_at(alone, several)}{_ahead(alone[0], matrix, chosen, several)}")
    if tied:
        equals = "as fast as any" if word == "fastest" else f"none has a better {_name(matrix)}"
        ties = [set(pool) for pool in pools if chosen in pool and len(pool) > 1]
        even = _even(every, chosen, pools)
        why.append(f"{equals}{_at(tied, several)}{_with(ties, chosen, even, matrix)}")
    text = f", {', '.join(why)}"
    for row, pool in zip(rows, pools, strict=True):
        if chosen not in pool:
            better = "is faster" if word == "fastest" else "is better"
            text += f"; {_of(row)} {_called(pool[0], matrix, axis)} {better}"
    blurs = dict.fromkeys(
        flag for row in (*alone, *tied)[:1] for flag in _blurred(row.cells[chosen[0]])
    )
    text += _accuracy([row.cells[chosen[0]] for row in (*alone, *tied)])
    text += f" (not certain: {', '.join(blurs)})" if blurs else ""
    return Told("recommended: ", _called(chosen, matrix, axis), text, about=f"{name}: ", lead=True)


def _pool(row: Row) -> list[_Choice]:
    """The best, then those that can't be told from it."""
    ranked = sorted(
        (index for index, cell in enumerate(row.cells) if cell.best or cell.tie),
        key=lambda index: (not row.cells[index].best, index),
    )
    return [(index, row.cells[index].variant) for index in ranked]


def _called(choice: _Choice, matrix: Matrix, axis: str) -> str:
    index, variant = choice
    label = matrix.sides[index].label
    return f"{variant}{_WHERE.get(axis, '').format(label)}" if variant else label


def _at(rows: Sequence[Row], several: bool) -> str:
    if not several:
        return ""
    known = [row.batch for row in rows if row.batch is not None]
    if len(known) == len(rows):
        return f" at batch {batch_list(known)}"
    return f" for {', '.join(row.label for row in rows)}"


def _of(row: Row) -> str:
    return f"for {row.label}" if row.batch is None else f"for batch {row.batch}"


def _ahead(row: Row, matrix: Matrix, chosen: _Choice, several: bool) -> str:
    """How far ahead of the next side in a workload that is won outright."""
    higher = METRICS[matrix.metric].better == "higher"
    rest = [
        (cell.quantity, index)
        for index, cell in enumerate(row.cells)
        if index != chosen[0]
        and cell.comparable
        and cell.quantity is not None
        and not cell.withheld
    ]
    mine = row.cells[chosen[0]].quantity
    if not rest or mine is None:
        return ""
    other, index = min(rest, key=lambda pair: pair[0].value * (-1 if higher else 1))
    factor = ratio(mine, other) if higher else ratio(other, mine)
    if factor is None:
        return ""
    variant = f" ({row.cells[index].variant})" if row.cells[index].variant else ""
    _, relation = words_of(matrix.metric)
    where = _at([row], several) if several else ""
    return f", ×{factor.text[1:]} {relation} {matrix.sides[index].label}{variant}{where}"


def _even(
    every: Iterable[_Choice], chosen: _Choice, pools: Sequence[Sequence[_Choice]]
) -> set[_Choice]:
    """Those that did as well in all: the chosen one is only named first."""

    def score(option: _Choice) -> tuple[int, int]:
        return sum(option in pool for pool in pools), sum(option == pool[0] for pool in pools)

    return {option for option in every if option != chosen and score(option) == score(chosen)}


def _with(ties: Sequence[set[_Choice]], chosen: _Choice, even: set[_Choice], matrix: Matrix) -> str:
    """Who can't be told from it in any of those workloads; the table has who can't in some."""
    always = sorted(set.intersection(*ties) - {chosen})
    if not always:
        return " (no clear difference from others)"
    names = dict.fromkeys(matrix.sides[index].label for index, _ in always)
    reason = "as the first in order" if even & set(always) else "for the better number"
    return f" (no clear difference from {', '.join(names)}; chosen {reason})"


def _accuracy(cells: Sequence[Cell]) -> str:
    """How near the outputs of a converted model are; speed alone does not say what to ship."""
    cases = [cell.case for cell in cells if cell.case]
    if not any(case.precision not in _AS_GIVEN for case in cases):
        return ""
    known = [
        case.quantities.get(name) for case in cases for name in ("accuracy_sqnr", "accuracy_slices")
    ]
    least_db = min((quantity.value for quantity in known if quantity), default=None)
    if least_db is None:
        return "; its accuracy was not measured"
    inputs = f" on {DRAWN_INPUTS}" if any(case.drawn_inputs for case in cases) else ""
    return f"; output error {significant(100 * 10 ** (-least_db / 20), 2)} %{inputs}"


def _name(matrix: Matrix) -> str:
    return metric_words(matrix.metric)


def _blurred(cell: Cell) -> tuple[str, ...]:
    return cell.case.blurred_by if cell.case else ()
