"""Stored runs of services: their metrics in comparisons, and limits on them in a gate."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.endurance.declaration import PASS as ENDURANCE
from pytest_ortbench.passes.endurance.facts import Endurance
from pytest_ortbench.passes.served.declaration import PASS as SERVED
from tests.passes.endurance.test_numbers import EXCHANGES, FOUND
from tests.passes.served.test_numbers import USE
from tests.results_factory import make_engine_result, make_machine, make_result, make_run

NONE_LOST = replace(FOUND, exchanges=replace(EXCHANGES, failed={}, away_s=0.0))
SHRINKING = replace(
    NONE_LOST, resident_bytes=tuple(10**8 - 10**4 * i for i in range(len(FOUND.at)))
)


def run_of(host: str, found: Endurance | None, *, day: int = 1) -> Run:
    """A session, and the service beside it."""
    url = "http://127.0.0.1:8011/v2/models/m/infer"
    service = make_engine_result(
        alias="endpoint", title="endpoint", role="endpoint", compile_ns=None, compiled_bytes=None,
        median_ns=5_000_000,
    )  # fmt: skip
    provider = replace(service.case.provider, options={"url": url})
    case = replace(service.case, provider=provider)
    service = replace(service, case=case, endurance=found, served=USE)
    return make_run(
        [make_result(), service],
        run_id=f"202601{day:02d}T030405Z-{host}-0a1b",
        machine=make_machine(host),
    )


@pytest.mark.parametrize("found", [FOUND, NONE_LOST, SHRINKING, None, Endurance(reason="refused")])
def test_each_metric_of_a_service_is_compared(tool, store, found) -> None:
    """Zeros, falling numbers and none at all have no ratio, and are no reason to stop."""
    paths = store(run_of("desk", found)), store(run_of("rack", FOUND, day=2))
    for metric in (*SERVED.metric_names, *ENDURANCE.metric_names):
        ended = tool("compare", *paths, f"--metric={metric}")
        assert ended.code == 0
        assert ended.out


def values_of(text: str) -> dict[str, str]:
    """The value of each side of the service's row, by its name."""
    rows = csv.DictReader(io.StringIO(text))
    return {row["side"]: row["value"] for row in rows if "/endpoint" in row["case_id"]}


def test_the_values_are_those_of_each_run(tool, store) -> None:
    paths = store(run_of("desk", NONE_LOST)), store(run_of("rack", FOUND, day=2))
    ended = tool("compare", *paths, "--metric=endurance_lost", "--format=csv")
    assert {side: float(value) for side, value in values_of(ended.out).items()} == {
        "desk": 0.0,
        "rack": 0.005,
    }


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (FOUND, NONE_LOST, 0),
        (NONE_LOST, FOUND, 1),
        # What can't be judged is not kept.
        (NONE_LOST, None, 1),
        (NONE_LOST, Endurance(reason="the service did not answer"), 1),
    ],
)
def test_a_gate_holds_limits_on_a_service_and_none_on_the_session(
    tool, store, before, after, code
) -> None:
    paths = store(run_of("desk", before)), store(run_of("desk", after, day=2))
    ended = tool("gate", *paths, "--limits=endurance_lost:<=0")
    assert ended.code == code
    failed = [line for line in ended.out.splitlines() if "endurance_lost" in line]
    assert bool(failed) == bool(code)
    assert not [line for line in failed if "/cpu/" in line]


def test_by_how_much_a_service_got_worse_is_no_limit(tool, store) -> None:
    paths = store(run_of("desk", FOUND)), store(run_of("desk", FOUND, day=2))
    ended = tool("gate", *paths, "--limits=served_p50:5%")
    assert (ended.code, ended.error.place) == (2, "--limits")
