"""``ortbench gate``."""

from __future__ import annotations

import dataclasses
import re

import msgspec
import pytest

from pytest_ortbench.analysis.relative_latency import RelativeLatency, relative_latency
from pytest_ortbench.cli.terminal import ExitCode
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.run import SCHEMA_VERSION, Machine
from pytest_ortbench.gate.measuring.trial_log import StoredTrialLog, TrialLog
from pytest_ortbench.gate.numbers.self_test import Trial
from pytest_ortbench.gate.numbers.stored_relative import RunSpread
from pytest_ortbench.gate.numbers.stored_trials import StoredTrial
from tests.results_factory import (
    make_case,
    make_measurement,
    make_memory,
    make_result,
    make_run,
    make_turns,
)

BEFORE = make_run([make_result()], run_id="20260102T030405Z-a-0001")


def after(**options):
    return dataclasses.replace(
        make_run([make_result(**options)], run_id="20260103T030405Z-a-0002"),
        started_at="2026-01-03T03:04:05Z",
    )


def judged_in(out: str) -> dict[str, str]:
    """The case of each line about a gate, and what it was compared with."""
    lines = [line.split() for line in out.splitlines() if line.startswith("gate ")]
    return {words[1]: words[3] for words in lines}


def test_equal_runs_pass(tool, store):
    store(BEFORE)
    store(after())
    ended = tool("gate", BEFORE.run_id, "latest")
    assert ended.code == 0
    assert judged_in(ended.out) == {"mobilenet_v2/native/cpu/b1": f"{BEFORE.run_id}:"}


def test_a_run_against_itself_is_remarked(tool, store):
    store(BEFORE)
    store(after())
    assert tool("gate", "latest", "latest").err.startswith("note: ")
    assert not tool("gate", BEFORE.run_id, "latest").err


def test_more_memory_fails_and_a_limit_allows_it(tool, store):
    store(BEFORE)
    store(after(measurements=[make_measurement(memory=make_memory(peak_bytes=70_000_000))]))
    ended = tool("gate", BEFORE.run_id, "latest")
    assert ended.code == 1
    assert re.search(r"peak_rss .*60\.0 MB .*70\.0 MB", ended.out)
    assert tool("gate", BEFORE.run_id, "latest", "--limits=peak_rss:20%").code == 0


def test_a_floor_for_the_answers_of_two_sides_is_refused_since_stored_runs_have_no_outputs(
    tool, store
):
    store(BEFORE)
    store(after())
    ended = tool("gate", BEFORE.run_id, "latest", "--limits=sides_sqnr:>=40dB")
    assert ended.code == 2
    assert "--ort-against" in ended.err


def test_vanished_cases_fail(tool, store):
    store(BEFORE)
    store(after(case=make_case(model="other")))
    ended = tool("gate", BEFORE.run_id, "latest")
    assert ended.code == 1
    assert re.search(r"(\S+) was removed", ended.out)[1] == "mobilenet_v2/native/cpu/b1"
    assert ended.out.splitlines()[-1].split() == ["new:", "other/native/cpu/b1"]


def test_new_and_vanished_cases_of_several_runtimes_are_told_apart(tool, store):
    store(BEFORE)
    store(after(case=make_case(runtime="nightly")))
    ended = tool("gate", BEFORE.run_id, "latest")
    assert list(judged_in(ended.out)) == ["mobilenet_v2/native/cpu/b1+current"]
    assert ended.out.splitlines()[-1].split() == ["new:", "mobilenet_v2/native/cpu/b1+nightly"]


def test_wrong_calls(tool, store):
    store(BEFORE)
    assert tool("gate").code == 2
    assert tool("gate", "latest").code == 2
    wrong = tool("gate", "latest", "latest", "--limits=latenc:3%").error
    assert ("'latenc'" in wrong.message, "'latency'" in wrong.hint) == (True, True)
    assert tool("gate", "latest", "--self-test").code == 2


def test_a_document_that_can_not_be_read_is_one_line(tool, store, tmp_path):
    # G7
    path = store(BEFORE)
    good = path.read_bytes()
    newer = good.replace(b'"schema_version": %d' % SCHEMA_VERSION, b'"schema_version": 99')
    for name, content in {"cut": good[:900], "new": newer, "no": b"hi", "empty": b""}.items():
        bad = tmp_path / f"{name}.json"
        bad.write_bytes(content)
        ended = tool("gate", bad, "latest")
        assert ended.code == 2
        assert len(ended.err.splitlines()) == 1
        assert f"{name}.json" in ended.err
        assert bad.read_bytes() == content


def trial(kind: str, verdict: str, slowdown: float = 0.0) -> Trial:
    return Trial(kind=kind, slowdown=slowdown, model="m", verdict=verdict, effect=slowdown)


def test_the_self_test_counts_stores_and_goes_on(tool, monkeypatch, tmp_path):
    machine = Machine(host="h", stable={"cpu": "x"})
    monkeypatch.setattr("pytest_ortbench.cli.gate.fingerprint", lambda: machine)
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _: str(tmp_path / "state"))
    made = [[trial("equal", "same"), trial("+5 %", "slower", 0.05)], [trial("equal", "slower")]]
    done: list[int] = []

    def run(self, until, *, done: int = 0, seen=done):
        seen.append(done)
        yield from made[len(seen) - 1]
        if len(seen) == 2:
            raise WorkerError(Failure(kind="crash", phase="measure", message="it died"))

    monkeypatch.setattr("pytest_ortbench.gate.measuring.self_test.SelfTest.run", run)
    monkeypatch.setattr("pytest_ortbench.cli.gate._cases", lambda *_: [make_case()] * 2)
    ended = tool("gate", "--self-test", "--minutes=1")
    assert ended.code == 0
    equal, five = ended.out.splitlines()[2:4]
    assert equal.split()[:3] == ["equal", "1", "0"]
    assert five.split()[:4] == ["+5", "%", "1", "1"]
    ended = tool("gate", "--self-test", "--minutes=1", "--resume")
    assert done == [0, 2]
    assert ended.out.splitlines()[2].split()[:3] == ["equal", "2", "1"]
    # The exact interval of one in two.
    assert "50.0 % [1.3 %, 98.7 %]" in ended.out
    assert "it died" in ended.err
    assert len(TrialLog.of(machine).read()) == 3


def test_trials_are_kept_in_a_file_of_ones_own_and_a_torn_line_is_made_good(
    tool, monkeypatch, tmp_path
):
    path = tmp_path / "kept" / "trials.jsonl"
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _: str(tmp_path / "state"))
    monkeypatch.setattr("pytest_ortbench.cli.gate._cases", lambda *_: [make_case()] * 2)

    def run(self, until, *, done: int = 0):
        yield trial("equal", "same" if done else "inconclusive")

    monkeypatch.setattr("pytest_ortbench.gate.measuring.self_test.SelfTest.run", run)
    call = ("gate", "--self-test", "--minutes=1", f"--file={path}")
    assert f"stored: {path}" in tool(*call).out
    # As a process leaves it that was killed while it wrote.
    path.write_bytes(path.read_bytes() + b'{"kind":"equal","slowd')
    ended = tool(*call, "--resume")
    assert ended.code == 0
    assert ended.out.splitlines()[2].split()[:3] == ["equal", "2", "0"]
    assert "50.0 % [1.3 %, 98.7 %]" in ended.out
    assert [one.verdict for one in TrialLog(path).read()] == ["inconclusive", "same"]
    assert not (tmp_path / "state").exists()


def test_trials_of_an_earlier_version_are_counted_and_others_are_one_line(tool, tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_text('{"kind":"equal","slowdown":0.0,"model":"m","verdict":"same","wall_s":7.0}\n')
    assert TrialLog(path).read()[0].wall_s == 7.0
    path.write_text("hello\n" + path.read_text())
    ended = tool("gate", "--self-test", "--minutes=1", "--resume", f"--file={path}")
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert "trials.jsonl" in ended.err
    assert path.read_text().startswith("hello")


def test_trials_on_other_threads_are_not_counted(tool, tmp_path):
    path = tmp_path / "trials.jsonl"
    line = '{"kind":"equal","slowdown":0.0,"model":"m","verdict":"same","threads":%d}\n'
    path.write_text(line % 1 + line % 2 + line % 2)
    call = ("gate", "--self-test", "--minutes=0", "--resume", f"--file={path}")
    ended = tool(*call, "--threads=2")
    assert ended.out.splitlines()[2].split()[:3] == ["equal", "2", "0"]
    assert ended.err.split()[:2] == ["note:", "1"]
    assert tool(*call).out.splitlines()[2].split()[:3] == ["equal", "3", "0"]


def test_runs_in_which_nothing_was_measured_are_not_the_same(tool, store):
    crashed = make_result(status="crash")
    store(make_run([crashed], run_id="20260102T030405Z-a-0001"))
    store(after(status="crash"))
    ended = tool("gate", BEFORE.run_id, "latest")
    assert ended.code == ExitCode.NOTHING
    assert ended.err.startswith("ortbench: ")


def test_no_minutes_count_the_trials_that_there_are_and_make_none(tool, tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_text('{"kind":"equal","slowdown":0.0,"model":"m","verdict":"same"}\n' * 3)
    call = ("gate", "--self-test", "--minutes=0", f"--file={path}")
    ended = tool(*call, "--resume")
    assert ended.code == 0
    assert ended.out.splitlines()[2].split()[:3] == ["equal", "3", "0"]
    assert len(TrialLog(path).read()) == 3
    ended = tool(*call)
    assert ended.code == ExitCode.NOTHING
    assert "--minutes" in ended.err


def stored_trial(value: float, model: str = "m") -> StoredTrial:
    ratio = relative_latency(make_result(turns=[make_turns(spread=0.0)] * 3))
    assert isinstance(ratio, RelativeLatency)
    return StoredTrial(
        model=model,
        threads=2,
        relative=dataclasses.replace(ratio, value=value, low=value, high=value, ratios=(value,)),
    )


def test_the_stored_self_test_accumulates_runs_and_judges_each_by_the_others(
    tool, monkeypatch, tmp_path
):
    path = tmp_path / "kept" / "runs.jsonl"
    monkeypatch.setattr("pytest_ortbench.cli.gate._cases", lambda *_: [make_case()] * 2)
    measured = []

    def run(cases, launcher, scratch, *, until, version, seed):
        measured.append((len(cases), seed))
        yield stored_trial(6.0)
        yield stored_trial(6.0 + 0.01 * seed)
        raise WorkerError(Failure(kind="crash", phase="measure", message="it died"))

    monkeypatch.setattr("pytest_ortbench.cli.gate.stored_trials", run)
    ask = ("gate", "--self-test", "--stored", "--minutes=1", f"--file={path}")
    assert tool(*ask).code == 0
    ended = tool(*ask, "--resume")
    assert measured == [(2, 0), (2, 2)]
    assert "it died" in ended.err
    kept = StoredTrialLog(path).read()
    assert [one.relative.value for one in kept] == [6.0, 6.0, 6.0, 6.02]
    # The first table: by both ways the three slowdowns, of four runs each.
    rows = [line.split() for line in ended.out.splitlines()[2:8]]
    assert [sum(map(int, row[4:10])) for row in rows] == [4] * 6
    counted = tool("gate", "--self-test", "--stored", "--minutes=0", "--resume", f"--file={path}")
    assert counted.out == ended.out
    assert len(measured) == 2


@pytest.mark.parametrize("asks_stored", [False, True])
def test_a_file_of_the_other_kind_of_self_test_is_not_mended_by_lines(tool, tmp_path, asks_stored):
    path = tmp_path / "trials.jsonl"
    row = trial("equal", "same") if asks_stored else stored_trial(6.0)
    path.write_bytes(msgspec.json.encode(row) + b"\n")
    kind = ("--stored",) if asks_stored else ()
    ended = tool("gate", "--self-test", *kind, "--minutes=0", "--resume", f"--file={path}")
    assert ended.code == 2
    assert "--file=trials-2.jsonl" in ended.err


def test_stored_alone_and_a_stored_self_test_of_nothing_are_told(tool, tmp_path):
    assert tool("gate", "--stored").code == 2
    none = tmp_path / "none.jsonl"
    ended = tool("gate", "--self-test", "--stored", "--minutes=0", "--resume", f"--file={none}")
    assert ended.code == ExitCode.NOTHING


def test_a_stored_trial_that_can_not_be_one_is_an_error_with_its_line(tool, tmp_path):
    path = tmp_path / "runs.jsonl"
    log = StoredTrialLog(path)
    log.append(stored_trial(6.0))
    good = path.read_bytes()
    path.write_bytes(good.replace(b'"value":6.0', b'"value":-6.0') + good)
    wrong = tool("gate", "--self-test", "--stored", "--minutes=0", "--resume", f"--file={path}")
    assert (wrong.code, wrong.error.place) == (2, f"{path}, line 1")


def test_two_stored_runs_are_told_by_what_runs_of_their_machine_differ_by(
    tool, store, monkeypatch, tmp_path
):
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _: str(tmp_path / "state"))
    machine = Machine(host="vm", stable={"virtualisation": "KVM"})
    results = [
        make_result(turns=[make_turns(model_ns, seed=seed) for seed in range(3)])
        for model_ns in (3_000_000, 3_300_000)
    ]
    runs = [
        dataclasses.replace(one, run_id=f"2026010{day}T030405Z-vm-0001")
        for day, one in enumerate((make_run([each], machine=machine) for each in results), start=1)
    ]
    for run in runs:
        store(run)
    asked = []

    def known(stored_on):
        asked.append(stored_on.stable)
        return {"lows": RunSpread(deviation=0.3, degrees=20)}

    ids = [run.run_id for run in runs]
    before = tool("gate", *ids).out
    monkeypatch.setattr("pytest_ortbench.cli.gate.spreads_on", known)
    after = tool("gate", *ids).out
    assert asked == [machine.stable]
    # The interval of the ratio is wider where runs are known to differ by more.
    widths = [high - low for low, high in map(interval_in, (before, after))]
    assert widths[1] > 3 * widths[0] > 0


def interval_in(out: str) -> tuple[float, float]:
    """The interval of the ratio to the yardstick."""
    low, high = re.search(r"\[×?([0-9.]+), ×?([0-9.]+)\]", out).groups()
    return float(low), float(high)
