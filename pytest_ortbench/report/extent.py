"""How much there is to a file, and to the one it is compared with, in words."""

from __future__ import annotations

from pytest_ortbench.core.model import Variant
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.report.arithmetic import format_count


def extent_words(after: Variant, before: Variant | None = None) -> str:
    """Say size, nodes, parameters and multiply-accumulates, before and after where they differ.

    ``14.2 MB → 3.64 MB, 152 → 417 nodes, 3.54 M → 3.49 M parameters, 301 M multiply-accumulates``;
    empty where nothing was counted.
    """
    now, then = after.extent, None if before is None else before.extent
    if now is None:
        return ""
    # What is left out on one side only would look like a saving.
    partly = bool(now.uncounted) and then is not None and not then.uncounted
    earlier = None if before is None else format_amount(before.size_bytes, "bytes")
    parts = [_changed(earlier, format_amount(after.size_bytes, "bytes"))]
    for name, unit in (
        ("nodes", "nodes"),
        ("parameters", "parameters"),
        ("macs", "multiply-accumulates"),
    ):
        value = getattr(now, name)
        if value is None or (name == "macs" and partly):
            continue
        past = None if then is None else getattr(then, name)
        text = _changed(None if past is None else _count(past, name), _count(value, name))
        least = "at least " if name == "macs" and now.uncounted else ""
        parts.append(f"{least}{text} {'node' if text == '1' and name == 'nodes' else unit}")
    if now.macs is None or partly:
        parts.append(f"multiply-accumulates unknown ({_why(now.reason, now.uncounted)})")
    return ", ".join(parts)


def _count(value: int, name: str) -> str:
    return str(value) if name == "nodes" else format_count(value)


def _changed(before: str | None, after: str) -> str:
    return after if before is None or before == after else f"{before} → {after}"


def _why(reason: str, uncounted: int) -> str:
    count = "1 node" if uncounted == 1 else f"{uncounted} nodes"
    return reason or f"{count} of operators or shapes that are not known"
