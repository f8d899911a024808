"""What a check of an export found, in words."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.model import Model
from pytest_ortbench.core.units import counted, significant
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.export_check.numbers.evidence import differing_whole, quoted
from pytest_ortbench.passes.export_check.numbers.faults import ExportFault

#: Outputs of whole values that a sentence names.
_NAMED = 4


def fault_words(fault: ExportFault) -> str:
    """Say what is wrong with an export."""
    if fault.kind == "swapped" and fault.confusion is not None:
        return (
            f"output {fault.confusion.output!r} holds what the source returns as "
            f"{fault.confusion.source_output!r}"
        )
    how = _how(fault)
    if fault.kind == "frozen":
        return (
            f"dimension {fault.dimension!r} is frozen at {_listed(fault.right_at)}: at "
            f"{_listed(fault.wrong_at)} {how}"
        )
    return how


def _how(fault: ExportFault) -> str:
    if fault.worst is None:
        return f"the file fails where the source does not: {fault.message}"
    worst = fault.worst
    which = f"output{'s' if len(fault.outputs) > 1 else ''} {quoted(fault.outputs)}"
    if worst.adds_nonfinite:
        return f"{which}: NaN or infinity where the source has none"
    if worst.sqnr_db is None:
        return f"{which}: only {worst.agree} of {worst.rows} values are the source's"
    near = ratio_words(worst.sqnr_db)
    if fault.is_drawn:
        return (
            f"{which}: only {near} from the source's; the file gives other outputs for the same "
            "inputs each time, as an export in training mode does"
        )
    return f"{which}: only {near} from the source's, which rounding does not explain"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def ratio_words(sqnr_db: float) -> str:
    """Return a ratio with three digits, but no tiny ones: ``-0.00001`` is said as ``0 dB``."""
    # Adding zero takes the sign of a zero away.
    return f"{significant(round(sqnr_db, 1) + 0.0, 3)} dB"


def difference_words(check: ExportCheck | None) -> str:
    """Say which node of the graph differs first; empty where outputs do not."""
    first = None if check is None else check.first_difference
    if first is None:
        return ""
    if first.reason:
        return f"where in the graph is not known: {first.reason}"
    node = f"{first.op_type} {first.node!r}" if first.node else first.op_type
    part = f"{first.kind} {first.module!r} of the source" if first.module else first.kind
    if first.is_fed_wrong:
        after = f", after {first.after!r}" if first.after else ""
        return (
            f"the first part that differs is {part} ({node}), which is fed other values already: "
            f"the cause stands before it{after}"
        )
    return f"the first node that differs is {node}, {part}"


def differing_words(check: ExportCheck, model: Model) -> str:
    """Say which outputs of whole values differ, and by how much; empty where none does.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    differing = differing_whole(check, model)
    texts = [
        f"{agree} of {rows} values of {name!r} are the source's"
        for name, (agree, rows) in list(differing.items())[:_NAMED]
    ]
    more = len(differing) - _NAMED
    return ", ".join(texts) + (f", and {counted(more, 'more output')} differ" if more > 0 else "")
