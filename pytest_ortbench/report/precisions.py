"""The block of precisions: how much faster, smaller and worse each is than fp32, provider by
provider.

As lines for the terminal and as a Markdown table; both say the same in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ortbench.analysis.precisions import (
    REFERENCES,
    PrecisionBlock,
    PrecisionRatio,
    PrecisionRow,
    precision_blocks,
)
from pytest_ortbench.analysis.sentences import agreement_words
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.passes.registry import PASSES, unit_of
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, markdown, one_line
from pytest_ortbench.report.extent import extent_words

HEADINGS = ("precision", "provider", "latency", "speed", "size", "memory", "accuracy", "flags")

#: Columns that a narrow terminal does without, in this order: most stand in the table of all cases
#: too, and the provider in the sentences.
_DISPENSABLE = (7, 2, 5, 1, 4)

#: Settings of a recipe that a line shows; the document has all of them.
_SHOWN = (
    "file",
    "holds",
    "simplified_by",
    "weight_type",
    "activation_type",
    "per_channel",
    "reduce_range",
    "calibration",
    "calibrated_on",
    "block_size",
    "nodes_in_float",
    "nodes_to_exclude",
)


def precision_lines(shown: ShownRun, *, width: int, encoding: str = "utf-8") -> list[str]:
    """Return the blocks of all models that were measured in several precisions, as plain lines.

    Args:
        shown: Any run.
        width: Characters that a line may have; longer sentences are wrapped.
        encoding: Of the stream that the lines go to.
    """
    lines: list[str] = []
    for block in precision_blocks(shown.run, shown.summaries):
        lines += ["", _title(block), *_table(block, width), *_sentences(block, width)]
    return [encodable(line, encoding) for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionTable:
    """One block as reports with tables show it.

    Attributes:
        title: Names the model and what the others are compared with.
        rows: Cells in the order of :data:`HEADINGS`.
        findings: Sentences below it.
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    findings: tuple[str, ...]


def precision_tables(shown: ShownRun) -> tuple[PrecisionTable, ...]:
    """Return the block of each model that was measured in several precisions."""
    return tuple(
        PrecisionTable(
            title=_title(block),
            rows=tuple(tuple(map(one_line, cells(row, block))) for row in block.rows),
            findings=tuple(map(one_line, findings(block))),
        )
        for block in precision_blocks(shown.run, shown.summaries)
    )


def precision_markdown(shown: ShownRun) -> str:
    """Return the same as Markdown tables; empty where no model has several precisions."""
    parts = []
    for table in precision_tables(shown):
        parts.append(f"**{markdown(table.title)}**\n")
        parts.append("| " + " | ".join(HEADINGS) + " |")
        parts.append("| --- | --- | --: | --- | --- | --- | --: | --- |")
        parts += ["| " + " | ".join(map(markdown, row)) + " |" for row in table.rows]
        parts += ["", *(f"- {markdown(text)}" for text in table.findings), ""]
    return "\n".join(parts).rstrip("\n")


def cells(row: PrecisionRow, block: PrecisionBlock) -> tuple[str, ...]:
    """Return what stands in the columns of :data:`HEADINGS` for one row."""
    named = row.precision, row.provider
    if row.status != "measured":
        return (*named, "", row.status, "", "", "", "")
    return (
        *named,
        "" if row.latency is None else format_amount(row.latency.value, "s"),
        _baseline(row, block) or latency_words(row.latency_ratio),
        "" if row.is_reference else plain_words(row.size_ratio, "smaller", "larger"),
        "" if row.is_reference else plain_words(row.memory_ratio, "less", "more"),
        accuracy_words(row, with_inputs=not _all_on_drawn(block)),
        " ".join(row.flags),
    )


def _baseline(row: PrecisionRow, block: PrecisionBlock) -> str:
    if row.is_reference:
        return "baseline"
    same = [other for other in block.rows if other.provider == row.provider]
    return (
        ""
        if any(other.is_reference for other in same)
        else ("no fp32 or native row to compare with")
    )


def latency_words(ratio: PrecisionRatio | None) -> str:
    """Say a latency ratio: ``×1.8 faster [×1.6, ×2.0]``, ``×1.3 slower […]``.

    Where the interval holds 1, both ends are said: it may be faster or slower. Where it does not
    and the gap proves nothing all the same, the gap is said. A file has one speed: its own.
    """
    if ratio is None:
        return ""
    if ratio.same_file:
        return "same file"
    if ratio.low is None or ratio.high is None:
        words = f"{_times(ratio.value)} (no interval)"
        return f"unclear: {words}" if ratio.tie else words
    if ratio.certain:
        near, far = (ratio.low, ratio.high) if ratio.value > 1 else (ratio.high, ratio.low)
        return f"{_times(ratio.value)} [{_factor(near)}, {_factor(far)}]"
    if ratio.low > 1 or ratio.high < 1:
        return f"{_times(ratio.value)}, not proven"
    return f"unclear [{_times(ratio.high)}, {_times(ratio.low)}]"


def plain_words(ratio: PrecisionRatio | None, less: str, more: str) -> str:
    """Say a ratio of amounts: ``×3.9 smaller``, ``×1.1 more``, ``same``."""
    if ratio is None or not ratio.value:
        return ""
    if ratio.same_file or abs(ratio.value - 1) < 0.005:
        return "same"
    return f"{_factor(ratio.value)} {less if ratio.value < 1 else more}"


def _all_on_drawn(block: PrecisionBlock) -> bool:
    """Whether every verdict on answers rests on random inputs alone, so that the title says it."""
    judged = [row for row in block.rows if row.status == "measured" and row.judged]
    return bool(judged) and all(row.on_drawn_inputs for row in judged)


def accuracy_words(row: PrecisionRow, *, with_inputs: bool = False) -> str:
    """Say how near the outputs are: ``34.1 dB, top-1 8/8 (≥63 %)``, ``exact``,
    ``34.1 dB, task 0.912``, ``NaN/Inf``, ``not judged``.

    Args:
        row: The row.
        with_inputs: Whether to say that the inputs were drawn, where they were.
    """
    parts = ["exact"] if row.exact else []
    if row.finite is False:
        parts.append("NaN/Inf")
    elif not row.judged:
        parts.append("not judged")
    if row.sqnr_db is not None:
        parts.append(f"{row.sqnr_db:.1f} dB")
    if row.top1 is not None and not row.exact:
        parts.append(f"top-1 {agreement_words(row.top1)}")
    parts += [own.load(own.beside_accuracy)(row.result) for own in PASSES if own.beside_accuracy]
    parts += [DRAWN_INPUTS] if with_inputs and row.on_drawn_inputs else []
    return ", ".join(filter(None, parts))


def findings(block: PrecisionBlock) -> Iterator[str]:
    """Yield what a reader should not miss: slower ones, wrong ones, why some have no number."""
    told: set[tuple[str, str, str]] = set()
    for row in block.rows:
        where = f"{row.precision} on {row.provider}"
        if row.status != "measured":
            same = [other for other in block.rows if _why_missing(other) == _why_missing(row)]
            if _why_missing(row) not in told:
                names = ", ".join(other.precision for other in same)
                yield f"{names} on {row.provider}: {row.status}: {row.reason}"
            told.add(_why_missing(row))
            continue
        ratio = row.latency_ratio
        if ratio is not None and ratio.certain and ratio.value > 1:
            yield f"{where} is {latency_words(ratio)} than {_reference(block)}"
        notes = [own.load(own.about_answers)(row.result) for own in PASSES if own.about_answers]
        yield from (f"{where}: {words}" for words in notes if words)
        barring = [name for name in row.flags if name in FLAGS and FLAGS[name].severity == "bars"]
        if barring:
            yield f"{where} is not ranked: {' '.join(barring)}"
    for precision, row in {row.precision: row for row in block.rows}.items():
        shown = [
            f"{name} {row.recipe[name]}"
            for name in _SHOWN
            if row.status == "measured" and row.recipe.get(name, "false") != "false"
        ]
        if shown:
            yield f"{precision}: {', '.join(shown)}"
        extent = _extent(row)
        if extent:
            yield f"{precision}: {extent}"
        yield from (f"{precision}: {note}" for note in row.notes)


def _why_missing(row: PrecisionRow) -> tuple[str, str, str]:
    return row.provider, row.status, row.reason


def _extent(row: PrecisionRow) -> str:
    """Size and counts before and after; of the reference its own."""
    if row.status != "measured" or row.variant is None:
        return ""
    return extent_words(row.variant, row.reference_variant)


def _title(block: PrecisionBlock) -> str:
    at = f" ({block.at})" if block.at else ""
    unit = unit_of(block.rows[0].result.case)
    return one_line(
        f"{block.model}{at}: precisions against {_reference(block)} on the same provider"
        + ("" if unit is None else f", latency: {unit.speed[1]}")
        + (f", accuracy on {DRAWN_INPUTS}" if _all_on_drawn(block) else "")
    )


def _reference(block: PrecisionBlock) -> str:
    """What the others are compared with: ``fp32``, or ``fp32 or native`` where providers differ."""
    references = dict.fromkeys(row.precision for row in block.rows if row.is_reference)
    return " or ".join(references) or REFERENCES[0]


def _table(block: PrecisionBlock, width: int) -> Iterator[str]:
    """The rows, without the least important columns where the terminal is narrow."""
    from rich.cells import cell_len  # heavy, and only where there is a block

    rows = [HEADINGS, *(cells(row, block) for row in block.rows)]
    widths = [max(cell_len(row[index]) for row in rows) for index in range(len(HEADINGS))]
    shown = list(range(len(HEADINGS)))
    for index in _DISPENSABLE:
        if index == 1 and len({row.provider for row in block.rows}) > 1:
            continue
        if sum(widths[column] + 2 for column in shown) > width:
            shown.remove(index)
    for row in rows:
        parts = [row[index] + " " * (widths[index] - cell_len(row[index])) for index in shown]
        yield "  " + "  ".join(parts).rstrip()


def _sentences(block: PrecisionBlock, width: int) -> Iterator[str]:
    import textwrap

    for text in findings(block):
        yield from textwrap.wrap(
            one_line(text),
            max(width, 40),
            initial_indent="  ",
            subsequent_indent="      ",
            break_on_hyphens=False,
        )


def _times(ratio: float) -> str:
    return f"{_factor(ratio)} {'slower' if ratio > 1 else 'faster'}"


def _factor(ratio: float) -> str:
    return f"×{significant(max(ratio, 1 / ratio) if ratio else 0.0, 3)}"
