"""How near an export is to its source, in words and as a column."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placing import Place
from pytest_ortbench.core.units import counted, significant
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.passes.fidelity.facts import CheckedSizes, ExportCheck, FixedSize
from pytest_ortbench.passes.fidelity.numbers import (
    export_faults,
    export_sqnr_db,
    fault_words,
    is_due,
    parting_words,
    why_unknown,
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
        model, check = result.case.model, result.fidelity
        assert check is not None
        lines += [f"export of {model.name}: {text}" for text in check_sentences(check, model)]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def _one_of_each(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return one case of each model, since a check is the same for all of them."""
    chosen: dict[str, CaseResult] = {}
    for result in results:
        if result.fidelity is not None and is_due(result):
            kept = chosen.get(result.case.model.digest)
            if kept is None or (kept.fidelity is not None and kept.fidelity.reason):
                chosen[result.case.model.digest] = result
    return list(chosen.values())


def export_facts(result: CaseResult) -> list[str]:
    """Say how a case compares with its source; nothing where it has none."""
    if result.fidelity is None or not is_due(result):
        return []
    return [
        f"export: {sentence}" for sentence in check_sentences(result.fidelity, result.case.model)
    ]


def check_sentences(check: ExportCheck, model: Model) -> list[str]:
    """Say what came of a check, a sentence each: the verdict first.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    missing = why_unknown(check)
    if missing:
        return [f"not judged: {missing}"]
    against = _framework(check)
    faults = export_faults(check, model)
    over = _over(check.choices)
    if faults:
        sentences = [f"WRONG against {against}: {fault_words(fault)}" for fault in faults]
        where = parting_words(check)
        sentences += [where] if where else []
    else:
        sentences = [f"{_nearness(check)} against {against}, over {over}"]
    refused = [fixed for fixed in check.fixed if fixed.taken]
    if refused:
        fixes = "; ".join(map(_fixed_words, refused))
        sentences.append(f"the source takes sizes that the file does not: {fixes}")
    return sentences


def _framework(check: ExportCheck) -> str:
    kind = engine_kind(check.framework)
    title = check.framework if kind is None else kind.title
    return f"{title} {check.version}".strip()


def _nearness(check: ExportCheck) -> str:
    value = export_sqnr_db(check)
    if value is not None:
        return f"exact to {significant(value, 3)} dB"
    outputs = [output for choice in check.choices for output in choice.outputs]
    unequal = [output for output in outputs if output.agree != output.rows]
    if not unequal:
        return "exact"
    worst = unequal[0]
    return f"{worst.agree} of {worst.rows} values of {worst.name} are equal"


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
