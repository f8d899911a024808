"""How near an export is to its source, in words and as a column."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.model import Model
from pytest_ortbench.core.nearness import NEAR_DB
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placing import Place
from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.passes.export_check.facts import CheckedSizes, ExportCheck, FixedSize
from pytest_ortbench.passes.export_check.numbers.evidence import left_out, why_unjudged
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.verdict import export_sqnr_db, is_due, is_exact
from pytest_ortbench.passes.export_check.numbers.words import (
    difference_words,
    differing_words,
    fault_words,
    ratio_words,
)
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line

#: Columns that people may ask tables for.
COLUMNS = (
    (
        Place(after="mean"),
        Column(
            key="export",
            heading="export",
            about="Smallest signal to noise ratio of the exported file against its source.",
            row="export_sqnr_db",
            metric="export_sqnr",
        ),
    ),
)


def export_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return lines about each exported model, after a blank one.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines: list[str] = []
    for result in _one_of_each(shown.run.cases):
        model, check = result.case.model, result.export_check
        assert check is not None
        lines += [f"export of {model.name}: {text}" for text in check_sentences(check, model)]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def _one_of_each(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return one case of each model, since a check is the same for all of them."""
    chosen: dict[tuple[str, str], CaseResult] = {}
    for result in results:
        if result.export_check is not None and is_due(result):
            key = (result.case.model.name, result.case.model.digest)
            kept = chosen.get(key)
            if kept is None or (kept.export_check is not None and kept.export_check.reason):
                chosen[key] = result
    return list(chosen.values())


def export_facts(result: CaseResult) -> list[str]:
    """Say how a case compares with its source; nothing where it has none."""
    check = result.export_check
    if check is None or not is_due(result):
        return []
    return [f"export: {sentence}" for sentence in check_sentences(check, result.case.model)]


def check_sentences(check: ExportCheck, model: Model) -> list[str]:
    """Say what came of a check, a sentence each: the verdict first.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    against = _framework(check)
    faults = export_faults(check, model)
    missing = "" if faults else why_unjudged(check, model)
    if missing:
        sentences = [f"not judged: {missing}"]
    elif faults:
        sentences = [f"WRONG against {against}: {fault_words(fault)}" for fault in faults]
        where = difference_words(check)
        sentences += [where] if where else []
    else:
        sentences = [f"{_nearness(check, model)} against {against}, over {_over(check.choices)}"]
    sentences += left_out(check)
    refused = [fixed for fixed in check.fixed if fixed.taken]
    if refused:
        fixes = "; ".join(map(_fixed_words, refused))
        sentences.append(f"the source takes sizes that the file does not: {fixes}")
    return sentences


def _framework(check: ExportCheck) -> str:
    kind = engine_kind(check.framework)
    title = check.framework if kind is None else kind.title
    return f"{title} {check.version}".strip()


def _nearness(check: ExportCheck, model: Model) -> str:
    if is_exact(check, model):
        return "exact"
    value = export_sqnr_db(check)
    whole = differing_words(check, model)
    parts = [whole] if whole else []
    if value is not None:
        word = "exact" if value >= NEAR_DB and not whole else "agrees"
        parts.insert(0, f"{word} to {ratio_words(value)}")
    return "; ".join(parts) or "all values equal those of the source"


def _over(choices: Sequence[CheckedSizes]) -> str:
    """Name inputs and sizes: ``24 inputs and batch 1, 2, 3``."""
    compared = [choice for choice in choices if choice.samples]
    sizes: dict[str, set[int]] = {}
    for choice in compared:
        for name, size in choice.sizes.items():
            sizes.setdefault(name, set()).add(size)
    text = counted(sum(choice.samples for choice in compared), "input")
    parts = [f"{name} {', '.join(map(str, sorted(values)))}" for name, values in sizes.items()]
    return f"{text} and {'; '.join(parts)}" if parts else text


def _fixed_words(fixed: FixedSize) -> str:
    inputs = ", ".join(fixed.inputs)
    return f"axis {fixed.axis} of {inputs} is fixed at {fixed.size}, and {fixed.tried} works there"
