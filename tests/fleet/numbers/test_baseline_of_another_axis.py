"""A baseline that is no side of what is compared, but of another axis of the same runs."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.report.view import build_view
from tests.report.fleet_views import machines


def test_the_axis_of_a_baseline_is_named() -> None:
    with pytest.raises(UsageError) as refused:
        build_view(machines(), baseline="int8-static")
    assert refused.value.place == "--baseline"
    assert "--by=precision" in refused.value.hint
