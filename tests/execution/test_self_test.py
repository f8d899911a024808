"""Trials of the self-test, and the work that it adds."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.self_test import SelfTest
from pytest_ortbench.gate.numbers.self_test import EQUAL
from pytest_ortbench.models.widened import CHANNELS, write_widened
from pytest_ortbench.worker.added_work import with_added_work
from tests.execution.fakes import FakeLauncher
from tests.passes.generation.generated import make_generating_case
from tests.results_factory import make_case

KVM = Machine(host="h", stable={"virtualisation": "KVM"})
NARROW, WIDE = make_case(model="narrow"), make_case(model="wide")
#: What the fake machine takes for one number of added work: half of what the test is told.
NUMBER_NS = 4.0


def time_of(case: Case, index: int) -> float:
    base = 107e6 if case.model.name == "wide" else 100e6
    return base + NUMBER_NS * case.added_work


def self_test(launcher: FakeLauncher) -> SelfTest:
    return SelfTest(
        launcher=launcher,
        machine=KVM,
        cases=[make_case(model="one"), make_case(model="two")],
        wider=(Pair(baseline=NARROW, contender=WIDE), 0.07),
        scratch=Path("unused"),
        seed=3,
        number_ns=2 * NUMBER_NS,
    )


def test_work_of_a_request_is_added_for_every_token() -> None:
    """Its cost is told from that of one run, and the request is slower by what is named."""

    def time_of_request(case: Case, index: int) -> float:
        return 100e6 + 32 * NUMBER_NS * case.added_work

    test = replace(
        self_test(FakeLauncher(time_of_request)),
        cases=[make_generating_case(new=32)],
        turns=(EQUAL, 0.10),
    )
    trials = some(test, 4)
    assert [trial.kind for trial in trials] == ["equal", "+10 %"] * 2
    assert [trial.verdict for trial in trials] == ["same", "slower"] * 2
    assert trials[1].effect == pytest.approx(0.10, abs=0.004)


def some(test: SelfTest, count: int, *, done: int = 0):
    return list(itertools.islice(test.run(time.monotonic() + 600, done=done), count))


def test_the_added_work_is_calibrated_to_the_slowdown_that_is_named():
    trials = some(self_test(FakeLauncher(time_of)), 24)
    by_kind = {trial.kind: trial for trial in trials}
    assert list(by_kind) == ["equal", "+5 %", "+10 %", "wider", "+3 %"]
    for kind, effect in {"equal": 0.0, "+5 %": 0.05, "+10 %": 0.10, "wider": 0.07}.items():
        assert by_kind[kind].effect == pytest.approx(effect, abs=0.004)
        assert by_kind[kind].verdict == ("same" if kind == "equal" else "slower")
    assert {trial.model for trial in trials} == {"one", "two", "narrow"}


def test_what_any_work_costs_on_top_is_part_of_the_slowdown():
    # An inference of 100 µs: 5 µs of work, of which 3 µs do not depend on how much it is.
    def with_a_call(case: Case, index: int) -> float:
        return 100e3 + (3e3 if case.added_work else 0) + NUMBER_NS * case.added_work

    trials = some(self_test(FakeLauncher(with_a_call)), 4)
    (five,) = [trial for trial in trials if trial.kind == "+5 %"][:1]
    assert five.effect == pytest.approx(0.05, abs=0.004)


def test_work_that_is_calibrated_while_the_machine_is_busy_is_as_much_as_without():
    # While the work is told that makes twice as much, an inference takes 1.7 times as long, and the
    # work no longer.
    plain, much = 2, 2 * 5  # workers

    def busy_at_times(case: Case, index: int) -> float:
        busy = plain <= len(launcher.opened) < plain + much
        assert not busy or case.added_work == 0 or case.added_work * NUMBER_NS > 90e6
        return (170e6 if busy else 100e6) + NUMBER_NS * case.added_work

    launcher = FakeLauncher(busy_at_times)
    test = self_test(launcher)
    test.number_ns = NUMBER_NS
    (five,) = some(test, 1, done=2)
    assert five.kind == "+5 %"
    assert five.effect == pytest.approx(0.05, abs=0.004)


def test_a_machine_that_is_too_busy_to_calibrate_on_adds_no_work_of_unknown_size():
    # The work that is added does not show: something else takes as long.
    test = self_test(FakeLauncher(lambda *_: 100e6))
    said: list[str] = []
    test.notify = said.append
    trials = some(test, 4)
    # Both models' gates with added work come third and fourth, and are left out.
    assert [trial.kind for trial in trials] == ["equal"] * 4
    assert len(said) == 2
    assert "busy" in said[0]
    assert test.left_out == 2


def test_earlier_trials_decide_where_it_goes_on():
    test = self_test(FakeLauncher(time_of))
    assert [(trial.kind, trial.model) for trial in some(test, 2, done=3)] == [
        ("+5 %", "two"),
        ("equal", "one"),
    ]


def test_a_model_that_can_not_be_measured_ends_it_and_counts_for_nothing():
    launcher = FakeLauncher(time_of)
    launcher.fails["one"] = Failure(kind="crash", phase="session", message="it died")
    with pytest.raises(WorkerError, match="it died"):
        some(self_test(launcher), 1)


def test_the_added_work_follows_every_inference():
    calls: list[str] = []

    def run(names: None, feeds: object) -> list[str]:
        calls.append("run")
        return ["outputs"]

    assert with_added_work(run, 0) is run
    slower = with_added_work(run, 1100)
    assert slower(None, {}) == ["outputs"]
    assert calls == ["run"]


def network_macs(channels: int) -> int:
    """Multiply-accumulates of the network with so many channels in its last layer."""
    pairs = itertools.pairwise((32, 64, 64, 64, channels))
    return sum(28 * 28 * 9 * before * after for before, after in pairs)


def test_the_wide_network_has_seven_percent_more_multiply_accumulates(tmp_path: Path):
    narrow, wide = (onnx.load(str(path)) for path in write_widened(tmp_path))
    for proto, channels in zip((narrow, wide), CHANNELS, strict=True):
        weights = [np.prod(tensor.dims) for tensor in proto.graph.initializer]
        assert sum(weights) * 28 * 28 == network_macs(channels)
    assert network_macs(80) / network_macs(64) == pytest.approx(1.0714, abs=1e-4)
