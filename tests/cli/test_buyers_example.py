"""The example of the procurement guide, from documents: what it says by hand is computed.

``big`` has 4 CPUs; its case was measured in 1, 2 and 4 processes. ``small`` has 2 CPUs and was
measured in one process only. Every inference of a measurement takes the same time.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from pathlib import Path

import pytest

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.processes.facts import OneOfSeveral, ProcessPoint
from tests import results_factory as factory

TABLE = """
currency = "EUR"
years = 3

[machines.big]
price = 2000

[machines.small]
price = 1300
"""
HOURS = 3 * 8766
ASKED = ("--machines=machines.toml", "--rate=600", "--p99=60ms")
GUIDE = Path(__file__).parents[2] / "docs/guides/procurement.md"

Row = dict[str, str]


def document(host: str, alone_ms: int, together_ms: dict[int, int], *, cpus: int) -> Run:
    def samples(milliseconds: int):
        return factory.make_samples([milliseconds * 1_000_000] * 500)

    def result(name: str) -> CaseResult:
        made = factory.make_result(
            case=factory.make_case(model=factory.make_model(name)),
            measurements=[
                factory.make_measurement(
                    samples=samples(alone_ms), worker=worker, threads=1, cpus=cpus
                )
                for worker in range(3)
            ],
        )
        points = tuple(
            ProcessPoint(
                asked=count,
                threads=1,
                processes=tuple(OneOfSeveral(samples=samples(taken)) for _ in range(count)),
            )
            for count, taken in together_ms.items()
        )
        return dataclasses.replace(made, processes=points)

    machine = factory.make_machine(host, cpu=f"CPU of {host}")
    return factory.make_run(
        [result("det")],
        run_id=f"20260102T030405Z-{host}-0a1b",
        machine=dataclasses.replace(machine, stable={**machine.stable, "cpus": str(cpus)}),
    )


BIG = document("big", 10, {1: 10, 2: 10, 4: 12}, cpus=4)
SMALL = document("small", 8, {}, cpus=2)
SMALL_MEASURED = document("small", 8, {2: 9}, cpus=2)


def erlang(service_s: float, limit_s: float) -> float:
    """The highest rate of M/D/1 at which 99 % end in time, by Erlang's formula of 1909."""

    def on_time(rate: float) -> float:
        wait = limit_s - service_s
        terms = (
            (rate * (count * service_s - wait)) ** count
            / math.factorial(count)
            * math.exp(-rate * (count * service_s - wait))
            for count in range(math.floor(wait / service_s + 1e-9) + 1)
        )
        return (1 - rate * service_s) * math.fsum(terms)

    low, high = 0.0, 0.99 / service_s
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if on_time(middle) >= 0.99 else (low, middle)
    return low


@pytest.fixture
def rows(tool, store, tmp_path):
    """Compare documents: the row of the best way of each machine, by machine."""

    def compare(*documents: Run) -> dict[str, Row]:
        (tmp_path / "machines.toml").write_text(TABLE)
        ended = tool("compare", *map(store, documents), *ASKED, "--format=csv")
        lines = csv.DictReader(io.StringIO(ended.out))
        return {line["machine"]: line for line in lines if line["best_of_machine"] == "1"}

    return compare


def numbers(row: Row, name: str) -> tuple[float, float]:
    return float(row[f"{name}_low"]), float(row[f"{name}_high"])


def test_the_machine_whose_processes_were_measured_has_an_answer(rows) -> None:
    big = rows(BIG, SMALL)["big"]
    one_of_four = erlang(0.012, 0.06)
    assert float(big["requests_per_s_each"]) == pytest.approx(4 * one_of_four, rel=0.01)
    # Four queues of 45 to 50 a second: 600 are four machines, at 2000 each.
    assert 45 < one_of_four < 50
    assert (float(big["machines_needed"]), float(big["cost"])) == (4, 8000)
    assert float(big["items_per_s"]) == pytest.approx(4 / 0.012, rel=0.01)
    assert float(big["items_per_s_per_price"]) == pytest.approx(4 / 0.012 / 2000, rel=0.01)
    assert float(big["cost_per_million_items"]) == pytest.approx(
        2000 / HOURS * 1e6 / (3600 * 4 / 0.012), rel=0.01
    )
    assert (big["served_at_a_time"], big["bounds_only"]) == ("4", "0")


def test_the_other_has_bounds_and_nothing_is_recommended(rows) -> None:
    found = rows(BIG, SMALL)
    small = found["small"]
    one = erlang(0.008, 0.06)
    least, most = math.ceil(600 / (2 * one)), math.ceil(600 / one)
    assert (least, most) == (4, 7)
    assert numbers(small, "machines_needed") == (4, 7)
    assert numbers(small, "cost") == (5200, 9100)
    low, high = numbers(small, "items_per_s")
    assert (low, high) == pytest.approx((125, 250), rel=0.06)
    assert {machine: row["rank"] for machine, row in found.items()} == {
        "big": "open",
        "small": "open",
    }


def test_measured_on_both_there_is_a_winner(rows) -> None:
    found = rows(BIG, SMALL_MEASURED)
    one_of_two = erlang(0.009, 0.06)
    assert numbers(found["small"], "machines_needed") == (math.ceil(300 / one_of_two),) * 2
    assert {machine: row["rank"] for machine, row in found.items()} == {"big": "", "small": "best"}


def test_the_guide_shows_what_is_printed(tool, store, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    (tmp_path / "machines.toml").write_text(TABLE)
    guide = " ".join(GUIDE.read_text(encoding="utf-8").split())
    for documents in ((BIG, SMALL), (BIG, SMALL_MEASURED)):
        ended = tool("compare", *map(store, documents), *ASKED)
        answer = "".join(ended.out.rpartition("\n\n")[2].rpartition("det b1")[1:])
        assert " ".join(answer.split()) in guide
