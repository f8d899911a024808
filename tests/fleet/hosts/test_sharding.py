"""What becomes of a suite that is divided over workers, by what these answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import Machine, Run
from pytest_ortbench.core.secrets import without_places
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.hosts.cluster import (
    Began,
    Cluster,
    Ended,
    SuitePlan,
    _connected,
    _ending,
    _own_address,
)
from pytest_ortbench.fleet.hosts.facts import ShardedRun
from pytest_ortbench.fleet.hosts.records import read_record
from pytest_ortbench.fleet.hosts.sharding import Sharding, refuse_mixed
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.shards import shard_lines
from pytest_ortbench.schema.document import decode_run, encode_run
from tests.results_factory import make_case, make_machine, make_result, make_run

MODELS = {"a": 2, "b": 1}


def document_of(model: str, host: str, batches: int = 1, **stable: str) -> Run:
    """The document of a shard: a case for each batch size."""
    results = [
        make_result(case=make_case(model=model, batch=batch + 1)) for batch in range(batches)
    ]
    machine = make_machine()
    machine = replace(machine, host=host, stable={**machine.stable, **stable})
    return make_run(results, run_id=f"20260102T030405Z-{host}-{model}", machine=machine)


def ended(attempt: str, model: str, run: Run | bytes, **more: Any) -> Ended:
    """What a worker answers."""
    document = encode_run(run) if isinstance(run, Run) else run
    answer = {
        "attempt": attempt,
        "name": f"w-{attempt[0]}",
        "models": (model,),
        "code": 0,
        "file": "run.json",
        "document": document,
        "output": "1 passed",
        **more,
    }
    return msgspec.convert(answer, Ended)


class Answering(Cluster):
    """A cluster whose workers answer what a test says."""

    def __init__(
        self, answers: Sequence[tuple[str, Ended | str]], began: Sequence[Began] = ()
    ) -> None:
        self.answers = list(answers)
        self.told = list(began)
        self.asked: list[str] = []
        self.cleared = 0

    def send(self, *_parcel: Any) -> None:
        """Nothing is sent."""

    def plan(self, *_parcel: Any) -> SuitePlan:
        return SuitePlan(code=0, output="", models=dict(MODELS))

    def measure(self, *order: Any) -> Iterator[tuple[str, Ended | str]]:
        self.asked += order[2]
        yield from self.answers

    def began(self, *_tag: Any) -> list[Began]:
        return self.told

    def stop(self, *_tag: Any) -> None:
        """Nothing runs."""

    def clear(self, *_tag: Any) -> None:
        self.cleared += 1


def sharded(folder: Path, cluster: Answering) -> Sharding:
    sharding = Sharding(ShardedRun(tag="T1", arguments=("suites",)), folder, lambda _text: None)
    sharding.measure(cluster, [])
    return sharding


GOOD = [
    ("a", ended("a0000000", "a", document_of("a", "lab-1", 2))),
    ("b", ended("b0000000", "b", document_of("b", "lab-2"))),
]


def test_one_run_says_which_machine_measured_what(tmp_path: Path) -> None:
    sharding = sharded(tmp_path, Answering(GOOD))
    (run,) = sharding.merged(apart=False)
    assert [(result.case.model.name, run.host_of(result)) for result in run.cases] == [
        ("a", "lab-1"),
        ("a", "lab-1"),
        ("b", "lab-2"),
    ]
    assert {shard.worker: shard.machine.host for shard in run.shards if shard.machine} == {
        "w-a": "lab-1",
        "w-b": "lab-2",
    }
    assert (run.expected, run.finished_at is None, run.command) == (3, False, ("pytest", "suites"))
    assert decode_run(encode_run(run), "x") == run
    assert [entry.row["host"] for entry in shown_run(run).entries] == ["lab-1", "lab-1", "lab-2"]
    assert len(shard_lines(run)) == 2


def test_no_host_is_left_in_a_run_without_places(tmp_path: Path) -> None:
    (run,) = sharded(tmp_path, Answering(GOOD)).merged(apart=False)
    for host in run.hosts:
        run = without_places(run, host)
    assert b"lab-" not in encode_run(run)


def test_an_attempt_whose_worker_was_lost_is_listed_beside_the_one_that_counts(
    tmp_path: Path,
) -> None:
    lost = Began(tag="T1", attempt="c0000000", name="w-c", models=("a",), began=1e9)
    late = Began(tag="T1", attempt="d0000000", name="w-d", models=("b",), began=1e300)
    (run,) = sharded(tmp_path, Answering(GOOD, [lost, late])).merged(apart=False)
    interrupted = {shard.name: shard for shard in run.shards if shard.state == "interrupted"}
    assert interrupted.keys() == {"c0000000", "d0000000"}
    assert interrupted["c0000000"].started_at == "2001-09-09T01:46:40+00:00"
    assert interrupted["d0000000"].started_at == ""
    assert len({result.case.key for result in run.cases}) == len(run.cases) == 3


@pytest.mark.parametrize(
    "answer",
    [
        "KilledWorker: it died three times",
        ended("b0000000", "b", b""),
        ended("b0000000", "b", b'{"schema_version": "__import__"}'),
        ended("b0000000", "b", b"\x80\x04cos\nsystem\n", file="../../run.json"),
        ended("b0000000", "b", document_of("a", "lab-2")),
        ended("a0000000", "b", document_of("b", "lab-2")),
    ],
)
def test_an_answer_that_is_none_costs_its_own_model(tmp_path: Path, answer: Ended | str) -> None:
    folder = tmp_path / "run"
    sharding = sharded(folder, Answering([GOOD[0], ("b", answer)]))
    (run,) = sharding.merged(apart=False)
    assert sharding.left() == ["b"]
    assert [(shard.state, bool(shard.reason)) for shard in run.shards] == [
        ("measured", False),
        ("failed", True),
    ]
    assert {result.case.model.name for result in run.cases} == {"a"}
    assert (run.expected, run.finished_at) == (3, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    assert {path.name for path in folder.iterdir()} == {"shards", "shards.json"}


class Hostile:
    """A future of Dask that holds what a worker returned."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"attempt": "../../x"},
        RuntimeError("from the worker"),
        *(
            {
                "attempt": name,
                "name": "w",
                "models": ["a"],
                "code": 0,
                "file": "run.json",
                "document": b"",
                "output": "",
            }
            for name in ("../../../x", "/etc/xyz", "a000000", "a0000000\n", "A0000000")
        ),
    ],
)
def test_what_a_worker_returns_is_checked_before_it_names_a_file(value: Any) -> None:
    assert isinstance(_ending(Hostile(value)), str)


def test_a_run_goes_on_with_the_models_that_it_lacks(tmp_path: Path) -> None:
    sharded(tmp_path, Answering([GOOD[0], ("b", "KilledWorker")]))
    again = Answering([GOOD[1]])
    sharding = Sharding(read_record(tmp_path, ShardedRun), tmp_path, lambda _text: None)
    sharding.measure(again, [])
    assert (again.asked, again.cleared) == (["b"], 1)
    (run,) = sharding.merged(apart=False)
    assert (len(run.cases), run.finished_at is None, sharding.left()) == (3, False, [])


@pytest.mark.parametrize("code", [1, None])
def test_a_failure_of_an_earlier_attempt_is_not_forgotten(code: int | None, tmp_path: Path) -> None:
    """What failed, or ended without a status, before the run went on fails the whole."""
    first = ("a", ended("a0000000", "a", document_of("a", "lab-1", 2), code=code))
    sharded(tmp_path, Answering([first]))
    earlier = read_record(tmp_path, ShardedRun)
    sharding = Sharding(earlier, tmp_path, lambda _text: None)
    sharding.measure(Answering([GOOD[1]]), [])
    assert (sharding.left(), sharding.passed()) == ([], False)
    # The same without a failure.
    whole = sharded(tmp_path / "whole", Answering(GOOD))
    assert whole.passed()


def test_a_run_does_not_go_on_with_another_project(tmp_path: Path) -> None:
    sharded(tmp_path, Answering([GOOD[0]]))
    record = replace(read_record(tmp_path, ShardedRun), arguments=("others",))
    with pytest.raises(UsageError) as refused:
        Sharding(record, tmp_path, lambda _text: None).measure(Answering([]), [])
    assert refused.value.place == "--resume"


MIXED = [
    ("a", ended("a0000000", "a", document_of("a", "lab-1", 2))),
    ("b", ended("b0000000", "b", document_of("b", "lab-9", cpu="another"))),
]


def test_machines_that_are_not_alike_stand_in_no_table_together(tmp_path: Path) -> None:
    sharding = sharded(tmp_path, Answering(MIXED))
    (run,) = sharding.merged(apart=False)
    assert {run.host_of(result) for result in run.cases} == {"lab-1"}
    assert [shard.state for shard in run.shards] == ["measured", "failed"]
    assert sharding.left() == ["b"]


def test_kept_apart_each_kind_of_machine_has_a_document_of_its_own(tmp_path: Path) -> None:
    first, second = sharded(tmp_path, Answering(MIXED)).merged(apart=True)
    assert [result.case.model.name for result in first.cases] == ["a", "a"]
    assert [result.case.model.name for result in second.cases] == ["b"]
    assert (first.expected, second.expected) == (2, 1)
    assert first.finished_at is not None
    assert [shard.models for shard in second.shards] == [("b",)]


def worker_facts(version: str = VERSION, **stable: str) -> dict[str, Any]:
    return {"host": "x", "pytest-ortbench": version, "stable": {"cpu": "EPYC", **stable}}


def test_workers_that_are_alike_are_taken() -> None:
    refuse_mixed({"w1": worker_facts(), "w2": worker_facts()}, apart=False)
    refuse_mixed({"w1": worker_facts(), "w2": worker_facts(cpu="other")}, apart=True)


@pytest.mark.parametrize(
    ("facts", "apart"),
    [
        (worker_facts(cpu="other"), False),
        (worker_facts(onnxruntime="onnxruntime==1.20.1"), False),
        (worker_facts(version="0.0.1"), False),
        (worker_facts(version="0.0.1"), True),
    ],
)
def test_workers_that_are_not_alike_are_refused(facts: dict[str, Any], apart: bool) -> None:
    with pytest.raises(UsageError):
        refuse_mixed({"w1": worker_facts(), "w2": facts}, apart=apart)


def test_a_machine_without_shards_is_named_as_before() -> None:
    run = make_run(machine=Machine(host="lab-1"))
    assert run.hosts == ("lab-1",)
    assert {run.host_of(result) for result in run.cases} == {"lab-1"}


def test_the_port_of_a_dashboard_is_not_that_of_the_scheduler() -> None:
    with pytest.raises(UsageError) as refused:
        _connected("http://lab:8787/status", None)
    assert "--scheduler=tcp://lab:8786" in refused.value.hint


@pytest.mark.parametrize("written", ["lab:8786", "10.0.0.7:8786", "http://lab:8786", "lab", "a:b"])
def test_the_host_and_port_of_a_wrong_address_are_kept(written: str) -> None:
    known = written.removeprefix("http://")
    assert (_own_address(written) == known) is known.endswith(":8786")
