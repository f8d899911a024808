"""What lies in a folder that anybody may have filled, as documents of machines."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts import returned
from pytest_ortbench.fleet.hosts.facts import FleetRun, HostOutcome
from pytest_ortbench.fleet.hosts.returned import collect, outcome_of
from pytest_ortbench.schema.document import encode_header, encode_result, encode_run
from tests.results_factory import make_run

DOCUMENT = encode_run(make_run())


def collected(folder: Path) -> dict[str, HostOutcome]:
    run = FleetRun(tag="T1", arguments=())
    collect(folder, folder.parent / "kept", run)
    return run.outcomes


def put(path: Path, content: bytes = DOCUMENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "jobs"
    made.mkdir()
    return made


def test_documents_are_named_after_their_file_or_their_folder(folder: Path) -> None:
    places = ("desk.json", "rack-1/run.json", "rack-2/results/20260102T030405Z-x-0a1b/run.json")
    for number, name in enumerate(places):
        put(folder / name, encode_run(make_run(run_id=f"run-{number}")))
    put(folder / "notes.txt", b"nothing of a machine")
    outcomes = collected(folder)
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "desk": "measured",
        "rack-1": "measured",
        "rack-2": "measured",
    }
    kept = folder.parent / "kept"
    assert {path.relative_to(kept).as_posix() for path in kept.rglob("*.json")} == {
        "desk/run.json",
        "rack-1/run.json",
        "rack-2/run.json",
    }


def test_the_newest_run_of_a_machine_counts(folder: Path) -> None:
    older = put(folder / "a" / "results" / "one" / "run.json")
    os.utime(older, (1, 1))
    put(folder / "a" / "results" / "two" / "run.json", encode_run(make_run(run_id="newer")))
    assert collected(folder)["a"].run_id == "newer"


def test_a_job_that_was_killed_left_a_journal(folder: Path) -> None:
    run = replace(make_run(finished=False), expected=9)
    lines = encode_header(run) + b"".join(map(encode_result, run.cases))
    put(folder / "a" / "results" / "one" / "journal.jsonl", lines)
    outcome = collected(folder)["a"]
    assert (outcome.state, outcome.cases, outcome.expected) == ("partial", len(run.cases), 9)


def test_what_a_killed_run_went_on_with_counts_beside_its_document_of_before(
    tmp_path: Path,
) -> None:
    run = replace(make_run(), expected=9)
    lines = encode_header(run) + b"".join(map(encode_result, run.cases))
    put(tmp_path / "run.json", encode_run(replace(run, cases=run.cases[:1])))
    put(tmp_path / "journal.jsonl", lines)
    outcome = outcome_of(tmp_path, HostOutcome(host="a", state="failed", stage="measure"))
    assert (outcome.state, outcome.cases, outcome.file) == (
        "partial",
        len(run.cases),
        "journal.jsonl",
    )
    put(tmp_path / "journal.jsonl", lines[: lines.index(b"\n") + 1])
    outcome = outcome_of(tmp_path, HostOutcome(host="a", state="failed", stage="measure"))
    assert (outcome.state, outcome.cases, outcome.file) == ("partial", 1, "run.json")


def test_a_journal_counts_where_the_document_is_none(tmp_path: Path) -> None:
    run = make_run(finished=False)
    put(tmp_path / "run.json", b"{}")
    put(tmp_path / "journal.jsonl", encode_header(run) + encode_result(run.cases[0]))
    outcome = outcome_of(tmp_path, HostOutcome(host="a", state="failed", stage="fetch"))
    assert (outcome.state, outcome.stage, outcome.cases) == ("partial", "read", 1)
    assert outcome.file == "journal.jsonl"


def test_one_document_of_two_machines_is_that_of_neither(folder: Path) -> None:
    for name in ("a", "b"):
        put(folder / f"{name}.json")
    put(folder / "c.json", encode_run(make_run(run_id="another")))
    outcomes = collected(folder)
    assert {name: (outcome.state, outcome.run_id) for name, outcome in outcomes.items()} == {
        "a": ("failed", ""),
        "b": ("failed", ""),
        "c": ("measured", "another"),
    }
    assert (outcomes["a"].stage, bool(outcomes["a"].reason)) == ("read", True)


def test_what_is_no_document_is_a_row_and_writes_nothing_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returned, "MOST_BYTES", 1 << 20)
    secret = put(folder.parent / "secret.json")
    (folder / "link.json").symlink_to(secret)
    (folder / "linked").symlink_to(folder.parent)
    (folder / "inside").mkdir()
    (folder / "inside" / "run.json").symlink_to(secret)
    os.mkfifo(folder / "pipe.json")
    put(folder / "script.json", b"#!/bin/sh\ntouch /tmp/never\n")
    put(folder / "pickle.json", b"\x80\x04\x95\x1e\x00cposix\nsystem\n.")
    put(folder / "odd\nname.json")
    put(folder / "..." / "run.json")
    put(folder / "fleet.json" / "run.json")
    put(folder / "large.json", b"[" * (2 << 20))
    put(folder / "deep.json", b"[" * 100_000)
    put(folder / "good.json")
    outcomes = collected(folder)
    assert {name for name, outcome in outcomes.items() if outcome.state == "measured"} == {"good"}
    assert all(
        (outcome.state, outcome.stage, bool(outcome.reason)) == ("failed", "read", True)
        for name, outcome in outcomes.items()
        if name != "good"
    )
    assert outcomes.keys() == {
        *("link", "inside", "pipe", "script", "pickle", "odd\nname", "...", "large", "good"),
        *("linked", "deep", "fleet.json"),
    }
    kept = folder.parent / "kept"
    assert {path.name for path in folder.parent.iterdir()} == {"jobs", "kept", "secret.json"}
    # What could be read stays as evidence; nothing of a link, a pipe or a large file is there.
    assert {path.name for path in kept.iterdir()} == {"good", "script", "pickle", "deep"}


@pytest.mark.parametrize("name", ["a.json", "a/run.json"])
def test_one_who_names_a_document_learns_which_folder_to_name(folder: Path, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        collected(put(folder / name))
    assert refused.value.hint.endswith(f": {folder}")


@pytest.mark.parametrize("name", ["", "absent"])
def test_a_folder_without_documents_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        collected(folder / name)
    assert refused.value.hint
