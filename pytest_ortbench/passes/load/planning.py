"""What options of loads say, and what does not go with others."""

from __future__ import annotations

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.load.numbers.plan import plan_load
from pytest_ortbench.passes.load.numbers.spec import parse_load
from pytest_ortbench.planning.axes import split_list


def read_loads(written: OptionText) -> tuple[str, ...]:
    """Read loads as they are written, each once."""
    return tuple(dict.fromkeys(split_list(written.texts, place=written.place)))


def refuse_loads_beyond_timeout(
    *, value: tuple[str, ...], place: str, timeout_s: float, load_official: bool
) -> None:
    """Refuse a load that can't be read, or that the timeout is too short for."""
    for text in value:
        spec = parse_load(text, place=place)
        plan = plan_load(spec, capacity_per_s=None, timeout_s=timeout_s, official=load_official)
        if isinstance(plan, str):
            raise UsageError(plan, place=place)
