"""Facts about the machine that plugins and ``conftest.py`` offer, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError

if TYPE_CHECKING:
    import pytest

_HOOK = "pytest_ortbench_machine_info"
_RULE = 'Return a dict of text, e.g. {"asset": "lab-07"}'


def offered_facts(config: pytest.Config) -> dict[str, str]:
    """Return what every ``pytest_ortbench_machine_info`` says; numbers as text.

    Args:
        config: The run.

    Raises:
        UsageError: for anything else than text and numbers under names, with who returned it:
            the run document holds text, and all measured cases would be lost at the end.
    """
    manager = config.pluginmanager
    offering = [
        each
        for each in getattr(config.hook, _HOOK).get_hookimpls()
        if not (each.wrapper or each.hookwrapper)
    ]
    facts: dict[str, str] = {}
    # The one that is called last overrules, as in the list that one call of all would give.
    for hook in reversed(offering):
        others = [other.plugin for other in offering if other.plugin is not hook.plugin]
        place = f"{_HOOK} of {hook.plugin_name}"
        for offered in manager.subset_hook_caller(_HOOK, remove_plugins=others)(config=config):
            facts.update(_read(offered, place))
    return facts


def _read(offered: object, place: str) -> dict[str, str]:
    if not isinstance(offered, Mapping):
        raise UsageError(f"{offered!r} is not a dict", place=place, hint=_RULE)
    return {_name(name, place): _text(name, value, place) for name, value in offered.items()}


def _name(name: object, place: str) -> str:
    if not isinstance(name, str):
        raise UsageError(f"the name {name!r} is not text", place=place, hint=_RULE)
    return name


def _text(name: object, value: object, place: str) -> str:
    # A subclass of str is written as the text that it is; True and 4 say what they are.
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{name!r} is {value!r}, which is not text", place=place, hint=_RULE)
