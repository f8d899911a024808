"""A comparison in at most fifteen words: which side is best over all, and for each model."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.sentences import first_names
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.fleet.numbers.evenness import (
    are_cells_even,
    are_sides_even,
    doubt_words,
    single_cells,
    single_sides,
)
from pytest_ortbench.fleet.numbers.matrix import Matrix, Row
from pytest_ortbench.fleet.numbers.words import words_of

#: Workloads that a headline names.
_NAMED = 2


def overall_headline(matrix: Matrix) -> Told:
    """Say which side is best over all cases that every side has, or why none is."""
    if not matrix.common:
        return Told("no case has a number on every side", about="overall: ")
    winner = next((i for i, mean in enumerate(matrix.overall) if mean.best), None)
    if winner is None:
        return Told("the sides have no mean", about="overall: ")
    name = matrix.sides[winner].label
    level = [
        side.label for side, mean in zip(matrix.sides, matrix.overall, strict=True) if mean.tie
    ]
    counted = "1 case" if matrix.common == 1 else f"{matrix.common} cases"
    if single_sides(matrix):
        names = first_names([matrix.sides[index].label for index in single_sides(matrix)], 2)
        return Told(f"no best over {counted}: one worker measured {names}", about="overall: ")
    tied = [index for index, mean in enumerate(matrix.overall) if mean.tie]
    if level and not are_sides_even(matrix, winner, tied):
        names = first_names([name, *level], 2)
        return Told(f"{names} can't be told apart over {counted}: too noisy", about="overall: ")
    if level:
        return Told(f"a tie of {first_names([name, *level], 2)} over {counted}", about="overall: ")
    word, _ = words_of(matrix.metric)
    verb = "is" if word == "fastest" else "has the"
    doubt = doubt_words(matrix)
    return Told("", name, f" {verb} {word} over {counted}{doubt}", about="overall: ")


def model_headline(rows: Sequence[Row], matrix: Matrix) -> Told:
    """Say for one model which side is best in which workload.

    Args:
        rows: The workloads of the model.
        matrix: The comparison that they are of.
    """
    about = f"{rows[0].model}: "
    word, _ = words_of(matrix.metric)
    where: dict[tuple[str, ...], list[str]] = {}
    noisy: list[str] = []
    single = dict.fromkeys(
        matrix.sides[index].label for row in rows for index in single_cells(row, matrix.metric)
    )
    if single:
        return Told(f"no best: one worker measured {first_names(list(single), 2)}", about=about)
    for row in rows:
        winners = tuple(
            side.label
            for side, cell in zip(matrix.sides, row.cells, strict=True)
            if cell.best or cell.tie
        )
        if winners and not are_cells_even(row):
            noisy.append(row.label)
        elif winners:
            where.setdefault(winners, []).append(row.label)
    if not where and noisy:
        at = "" if len(noisy) == len(rows) else f" at {first_names(noisy, _NAMED)}"
        return Told(f"sides can't be told apart{at}: too noisy", about=about)
    if not where:
        return Told("no side has a number that may be compared", about=about)
    # Where one side wins alone comes first: it can be stressed.
    (first, labels), *others = sorted(where.items(), key=lambda entry: len(entry[0]))
    alone = not others and not noisy
    at = "" if alone else f" at {first_names(labels, _NAMED)}"
    if others:
        names, further = others[0]
        at += f", {_tied(names)} at {first_names(further, _NAMED)}"
    if len(first) == 1:
        return Told(f"{word}: ", first[0], at, about=about)
    return Told(f"{word}: {_tied(first)}{at}", about=about)


def _tied(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"a tie of {len(names)}"
