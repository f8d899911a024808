"""Which tests are ours, and the case of one. Every start of pytest loads this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ortbench.planning.matrix import Planned


def is_ours(item: pytest.Item) -> bool:
    """Whether a test takes the fixture or carries the marker."""
    takes = "ortbench" in getattr(item, "fixturenames", ())
    return takes or item.get_closest_marker("ortbench") is not None


def planned_of(item: pytest.Item) -> Planned | None:
    """Return the case that a test is parametrised with, ``None`` for a test that has none."""
    callspec = getattr(item, "callspec", None)
    parameter: object = callspec.params.get("ortbench") if callspec is not None else None
    if parameter is None:
        return None
    from pytest_ortbench.planning.matrix import Planned

    # A wrong marker has another one; so has a plan without a case, if pytest is to make its test.
    return parameter if isinstance(parameter, Planned) else None
