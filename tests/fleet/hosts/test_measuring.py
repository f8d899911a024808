"""What becomes of machines, by what Ansible says and what is in their folders."""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.core.run import Run
from pytest_ortbench.fleet.hosts.facts import FleetRun, Host, HostOutcome
from pytest_ortbench.fleet.hosts.measuring import Fleet
from pytest_ortbench.fleet.hosts.records import read_record, write_record
from pytest_ortbench.store.folder import write_document
from tests.results_factory import make_run


class Watched:
    """A fleet of one machine, told events in place of Ansible's."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self.folder = folder
        self.fleet = Fleet(
            FleetRun(tag="T1", arguments=("suites",)),
            [Host(name="lab-1")],
            inventory=folder / "hosts.yml",
            folder=folder,
            tell=lambda name, text: self.lines.append(f"{name} {text}"),
            poll_s=1,
        )

    def say(self, kind: str, task: str, res: dict[str, Any], **more: Any) -> None:
        data = {"host": "lab-1", "task": task, "res": res, **more}
        self.fleet._on_event({"event": kind, "event_data": data})

    def answer(self, task: str, **answer: Any) -> None:
        self.say("runner_on_ok", task, {"stdout": "motd\n" + json.dumps({"ok": True, **answer})})

    def outcome(self) -> HostOutcome:
        self.fleet._settle()
        return read_record(self.folder, FleetRun).outcomes["lab-1"]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def _keep(watched: Watched, run: Run) -> None:
    (watched.folder / "lab-1").mkdir()
    write_document(run, watched.folder / "lab-1" / "run.json")


def test_one_that_ssh_does_not_reach_is_a_row_with_the_words_of_ssh(watched: Watched) -> None:
    message = "Failed to connect to the host via ssh: Host key verification failed."
    watched.say("runner_on_unreachable", "look", {"unreachable": True, "msg": message})
    outcome = watched.outcome()
    assert (outcome.state, outcome.stage, outcome.reason) == ("failed", "connect", message)


def test_one_that_is_lost_later_says_at_which_stage(watched: Watched) -> None:
    watched.answer("look", clock=time.time())
    watched.say("runner_on_unreachable", "status", {"msg": "timed out"})
    outcome = watched.outcome()
    assert (outcome.stage, outcome.reason) == ("measure", "timed out")


def test_one_without_python_says_so_in_the_words_of_its_shell(watched: Watched) -> None:
    watched.say("runner_on_failed", "look", {"rc": 127, "stderr": "python3: absent\n"})
    outcome = watched.outcome()
    assert (outcome.stage, outcome.reason) == ("look", "python3: absent")


def test_what_our_program_says_comes_before_what_ansible_says_of_it(watched: Watched) -> None:
    line = json.dumps({"ok": False, "reason": "3 MB"})
    watched.say("runner_on_failed", "missing", {"stdout": line, "msg": "non-zero return code"})
    outcome = watched.outcome()
    assert (outcome.stage, outcome.reason) == ("space", "3 MB")


def test_of_a_long_reason_beginning_and_end_are_kept(watched: Watched) -> None:
    reason = "uv pip: " + "a/path " * 200 + "no space is left"
    watched.say("runner_on_failed", "environment", {"stdout": json.dumps({"reason": reason})})
    kept = watched.outcome().reason
    assert (kept[:7], kept[-16:]) == (reason[:7], reason[-16:])
    assert len(kept) <= 500


def test_a_look_that_waits_is_no_failure(watched: Watched) -> None:
    watched.say("runner_on_failed", "status", {"msg": "retries"}, ignore_errors=True)
    assert watched.outcome().reason == ""


def test_the_clock_of_a_machine_is_compared_with_ours(watched: Watched) -> None:
    watched.answer("look", clock=time.time() + 3600)
    assert watched.outcome().clock_s == pytest.approx(3600, abs=600)


@pytest.mark.parametrize(
    "stdout",
    [
        *("", "[]", "null", "{", '{"clock": "soon"}', '{"clock": null}', "\x00"),
        *('{"clock": 1e999}', '{"clock": NaN}', f'{{"clock": 1{"0" * 400}}}', "[" * 100_000),
    ],
)
def test_an_answer_that_is_none_says_nothing(watched: Watched, stdout: str) -> None:
    watched.say("runner_on_ok", "look", {"stdout": stdout})
    assert watched.outcome().clock_s is None


@pytest.mark.parametrize(
    "answer", ['{"code": "0"}', '{"code": 1e3}', f'{{"code": 1{"0" * 30}}}', '{"code": "\\ud800"}']
)
def test_an_exit_status_that_is_none_is_unknown(watched: Watched, answer: str) -> None:
    _keep(watched, make_run())
    watched.say("runner_on_ok", "collect", {"stdout": answer})
    outcome = watched.outcome()
    assert (outcome.state, outcome.code) == ("partial", None)


@pytest.mark.parametrize("text", ["a\nrack measures", "\udcff", "x" * 100_000])
def test_what_a_machine_says_is_one_line_of_text(watched: Watched, text: str) -> None:
    watched.say("runner_on_unreachable", "look", {"msg": text})
    line = json.dumps({"cases": text, "expected": 3})
    watched.say("runner_retry", "status", {"stdout": line})
    for told in (*watched.lines, watched.outcome().reason):
        assert told.encode("utf-8")
        assert ("\n" in told, len(told) <= 600) == (False, True)


def test_secrets_in_what_a_machine_says_are_not_kept(watched: Watched) -> None:
    message = "can't reach https://me:hunter2@index.example/simple"
    watched.say("runner_on_failed", "environment", {"msg": message})
    reason = watched.outcome().reason
    assert ("index.example" in reason, "hunter2" in reason) == (True, False)


def test_progress_is_told_when_it_changes(watched: Watched) -> None:
    for cases in (1, 1, 2):
        line = json.dumps({"cases": cases, "expected": 3})
        watched.say("runner_retry", "status", {"stdout": line})
    assert watched.lines == ["lab-1 1 of 3 cases", "lab-1 2 of 3 cases"]


def test_a_finished_document_is_measured_whatever_pytest_says_of_limits(watched: Watched) -> None:
    run = make_run()
    _keep(watched, run)
    watched.answer("collect", code=1, output="")
    outcome = watched.outcome()
    assert (outcome.state, outcome.stage, outcome.code) == ("measured", None, 1)
    assert (outcome.run_id, outcome.cases) == (run.run_id, len(run.cases))


def test_a_run_whose_end_nobody_saw_is_not_measured_to_the_end(watched: Watched) -> None:
    _keep(watched, make_run())
    watched.answer("collect", output="")
    outcome = watched.outcome()
    assert (outcome.state, outcome.stage, outcome.code) == ("partial", "measure", None)
    assert outcome.cases == outcome.expected


def test_a_document_that_lacks_cases_is_partial(watched: Watched) -> None:
    run = make_run()
    _keep(watched, replace(run, expected=len(run.cases) + 1))
    assert watched.outcome().state == "partial"


def test_what_is_no_document_is_a_failure_of_reading(watched: Watched) -> None:
    (watched.folder / "lab-1").mkdir()
    (watched.folder / "lab-1" / "run.json").write_text('{"schema_version": "__import__"}')
    outcome = watched.outcome()
    assert (outcome.state, outcome.stage, outcome.run_id) == ("failed", "read", "")


def test_a_run_without_document_tells_what_pytest_printed(watched: Watched) -> None:
    watched.answer("collect", code=4, output="ERROR: nosuch")
    outcome = watched.outcome()
    assert (outcome.state, outcome.stage, outcome.code) == ("failed", "measure", 4)
    assert outcome.reason.endswith(": ERROR: nosuch")


def test_a_machine_that_was_never_heard_of_was_not_reached(watched: Watched) -> None:
    assert watched.outcome().stage == "connect"


def test_events_of_other_machines_and_tasks_decide_nothing(watched: Watched) -> None:
    for data in ({}, {"host": "other", "task": "look"}, {"host": "lab-1"}, {"host": ["x"]}):
        watched.fleet._on_event({"event": "runner_on_failed", "event_data": data})
    assert watched.outcome().reason == ""


def test_a_record_that_cant_be_written_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(UsageError) as refused:
        write_record(FleetRun(tag="T1", arguments=("a",)), tmp_path / "results" / "T1")
    assert refused.value.place == str(tmp_path / "results" / "T1" / "fleet.json")
    assert "--resume" not in refused.value.hint


def test_a_run_whose_record_stands_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FleetRun(tag="T1", arguments=("a",))
    write_record(run, tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pytest_ortbench.fleet.hosts.records.replace_file", full)
    with pytest.raises(UsageError) as refused:
        write_record(run, tmp_path)
    assert "--resume=T1" in refused.value.hint


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    run = FleetRun(
        tag="T1", arguments=("a",), outcomes={"x": HostOutcome(host="x", state="failed")}
    )
    write_record(run, tmp_path)
    assert read_record(tmp_path, FleetRun) == run
    (tmp_path / "fleet.json").write_text('{"tag": 3}')
    with pytest.raises(DocumentError):
        read_record(tmp_path, FleetRun)
