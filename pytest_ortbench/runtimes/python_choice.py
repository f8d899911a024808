"""Which Python a runtime is made with, and what to say if none fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pytest_ortbench.runtimes.installer import InstallError
from pytest_ortbench.runtimes.interpreters import OLDEST, Interpreter, ask


def fitting(here: Sequence[Interpreter], wish: str) -> Sequence[Interpreter]:
    """Return the Pythons to try, in this order.

    Args:
        here: Those of this machine, in the order of preference.
        wish: A version (``3.11``) or the path of one; empty for none.
    """
    if not wish:
        return here
    if re.fullmatch(r"[\d.]+", wish):
        return [each for each in here if f"{each.text}.".startswith(f"{wish}.")]
    found = ask(Path(wish).expanduser())
    return [found] if found is not None else []


def failure_without(
    here: Sequence[Interpreter], wish: str, refusals: Sequence[InstallError]
) -> tuple[str, str]:
    """Say why no Python fits, and what to do.

    Args:
        here: The Pythons of this machine.
        wish: The Python that was asked for, empty for none.
        refusals: What the installer said of those that were tried.

    Returns:
        Reason and next step.
    """
    found = ", ".join(each.text for each in here) or "none"
    if not refusals:
        if re.fullmatch(r"[\d.]+", wish):
            return f"Python {wish} is not here (found {found})", _install(wish)
        return f"{wish} is no Python that packages are built for", "Name another one"
    built = sorted({minor for refusal in refusals for minor in refusal.pythons})
    if not built:
        return refusals[0].text, f"Tried with Python {found}"
    usable = [minor for minor in built if (3, minor) >= OLDEST]
    reason = f"its packages are built for {_spelt(built)}, and "
    if not usable:
        oldest = ".".join(map(str, OLDEST))
        return f"{reason}the oldest that can be measured is {oldest}", "Use a newer version"
    if wish:
        return f"{reason}{wish} was asked for", "Leave 'python' out, or name one of these"
    return f"{reason}none of these is here (found {found})", _install(f"3.{usable[-1]}")


def _install(version: str) -> str:
    return (
        f"Install it, e.g. with 'uv python install {version}' or 'pyenv install {version}': "
        "Pythons are not downloaded without being asked for"
    )


def _spelt(minors: Sequence[int]) -> str:
    if len(minors) > 2 and list(minors) == list(range(minors[0], minors[-1] + 1)):
        return f"Python 3.{minors[0]} to 3.{minors[-1]}"
    return "Python " + " and ".join(f"3.{minor}" for minor in minors)
