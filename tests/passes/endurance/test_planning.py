"""What is asked of a service that is to endure a load, and what goes with nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.endurance.facts import FAULTS
from pytest_ortbench.passes.endurance.planning import (
    endures,
    read_faults,
    read_rate,
    refuse_idle_faults,
    refuse_rate_alone,
    refuse_without_service,
)
from tests.results_factory import make_case

PLACE = "--ort-endurance"


def written(text: str) -> OptionText:
    return OptionText(texts=(text,), place=PLACE, is_typed=True, base=Path())


def test_faults_are_read_once_each_or_all() -> None:
    assert read_faults(written("kill,slow,kill")) == ("kill", "slow")
    assert read_faults(written("all")) == tuple(FAULTS)
    assert read_rate(written("20")) == 20.0


@pytest.mark.parametrize(
    ("read", "text"),
    [(read_faults, "explode"), (read_rate, "0"), (read_rate, "-1"), (read_rate, "2e6")],
)
def test_what_is_none_is_refused(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(UsageError) as refused:
        read(written(text))
    assert refused.value.place == PLACE


def test_only_a_service_endures_and_only_ones_own_is_ended() -> None:
    refuse_without_service(value=60.0, place=PLACE, serve="reference", endpoint="")
    refuse_without_service(value=60.0, place=PLACE, serve="", endpoint="http://127.0.0.1:1/")
    refuse_idle_faults(value=("slow",), place=PLACE, endurance_s=60.0, serve="")
    refuse_idle_faults(value=("kill",), place=PLACE, endurance_s=60.0, serve="reference")
    refuse_rate_alone(value=5.0, place=PLACE, endurance_s=60.0)
    with pytest.raises(UsageError):
        refuse_without_service(value=60.0, place=PLACE, serve="", endpoint="")
    # What may be done stands in the next step, also where all was asked for, or nothing of it.
    for value, rest in (
        (("slow", "kill"), "=slow"),
        (("restart", "kill"), "=malformed,oversized,slow"),
        (tuple(FAULTS), "=malformed,oversized,slow"),
        (("kill",), "=malformed,oversized,slow"),
    ):
        with pytest.raises(UsageError) as refused:
            refuse_idle_faults(value=value, place=PLACE, endurance_s=60.0, serve="")
        assert refused.value.hint.endswith(rest)
        assert ("'all'" in refused.value.message) == (value == tuple(FAULTS))
        assert ("'restart'" in refused.value.message) == ("restart" in value)
    with pytest.raises(UsageError):
        refuse_idle_faults(value=("slow",), place=PLACE, endurance_s=0.0, serve="reference")
    with pytest.raises(UsageError):
        refuse_rate_alone(value=5.0, place=PLACE, endurance_s=0.0)


def test_it_is_for_rows_of_services() -> None:
    case = make_case()
    asked = replace(case, sampling=replace(case.sampling, endurance_s=60.0))
    endpoint = Provider(name="endpoint", alias="endpoint", role="endpoint")
    assert not endures(asked)
    assert endures(replace(asked, provider=endpoint))
    assert not endures(replace(case, provider=endpoint))
