"""Which cases a figure shows when there are more than a reader can tell apart; the rest is counted.

A figure of 300 labels is a forest. Each picks the cases that answer its question and says in a
note how many it left out and where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from pytest_ortbench.report.entries import Entry, ModelGroup, by_model

#: Panels beyond this make a figure longer than a screen and a half.
MAX_PANELS = 6
#: Rows of all panels together.
MAX_ROWS = 36
#: A panel with fewer rows says nothing about a model.
MIN_ROWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The cases of one model that a figure shows, and how many it does not."""

    group: ModelGroup
    shown: tuple[Entry, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a figure shows, and the sentences that say what it does not."""

    panels: tuple[Panel, ...]
    notes: tuple[str, ...]


def choose_cases(
    shown: Sequence[Entry],
    key: Callable[[Entry], float | None],
    *,
    which: str,
    panels: int = MAX_PANELS,
    rows: int = MAX_ROWS,
    per_panel: int = MAX_ROWS,
) -> Choice:
    """Pick models and, within each, the best cases of every batch size in turn.

    Latencies of different batch sizes are never ranked against each other, so that every batch
    size sends its best before any sends its second best.

    Args:
        shown: All cases of the run.
        key: The value to sort by, smallest first; ``None`` keeps a case out of the figure.
        which: What the chosen ones are, for the note: ``fastest``.
        panels: Most models.
        rows: Most cases over all panels.
        per_panel: Most cases of one model.
    """
    groups = [
        (group, tuple(entry for entry in group.entries if key(entry) is not None))
        for group in by_model(shown)
    ]
    drawn = [(group, members) for group, members in groups if members]
    kept = drawn[:panels]
    budget = _share([min(per_panel, len(members)) for _, members in kept], rows)
    chosen = tuple(
        Panel(
            group=group,
            shown=_best_of_each_batch(members, key, count),
            left_out=len(members) - count,
        )
        for (group, members), count in zip(kept, budget, strict=True)
    )
    return Choice(panels=chosen, notes=_notes(shown, chosen, drawn[panels:], key, which))


def _share(wanted: Sequence[int], rows: int) -> list[int]:
    """Give each panel what it wants while there is room, small ones first."""
    given = [0] * len(wanted)
    left = max(rows, MIN_ROWS * len(wanted))
    for position, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        given[index] = min(wanted[index], left // (len(wanted) - position))
        left -= given[index]
    return given


def _best_of_each_batch(
    members: Sequence[Entry], key: Callable[[Entry], float | None], count: int
) -> tuple[Entry, ...]:
    def value(entry: Entry) -> float:
        number = key(entry)
        return float("inf") if number is None else number

    batches: dict[int, list[Entry]] = {}
    for entry in sorted(members, key=value):
        batches.setdefault(entry.result.case.batch, []).append(entry)
    in_turn = chain.from_iterable(zip_longest(*(batches[batch] for batch in sorted(batches))))
    picked = [entry for entry in in_turn if entry is not None][:count]
    return tuple(sorted(picked, key=lambda entry: (entry.result.case.batch, value(entry))))


def _notes(
    shown: Sequence[Entry],
    panels: Sequence[Panel],
    further: Sequence[tuple[ModelGroup, tuple[Entry, ...]]],
    key: Callable[[Entry], float | None],
    which: str,
) -> tuple[str, ...]:
    sentences: list[str] = []
    left_out = sum(panel.left_out for panel in panels)
    if left_out:
        total = left_out + sum(len(panel.shown) for panel in panels)
        sentences.append(
            f"Shown: the {which} of each batch size, {total - left_out} of {total} cases; "
            "the table has them all."
        )
    if further:
        cases = sum(len(members) for _, members in further)
        sentences.append(
            f"Not shown: {len(further)} further models with {cases} cases; the table has them."
        )
    failed = sum(not entry.measured for entry in shown)
    if failed:
        sentences.append(f"{failed} of {len(shown)} cases gave no number; the table says why.")
    without = sum(entry.measured and key(entry) is None for entry in shown)
    if without:
        sentences.append(f"{without} measured cases have no value here; the table says why.")
    return tuple(sentences)
