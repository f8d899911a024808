"""The best known time of a yardstick on this machine, in a file that may hold anything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.outcome import Samples, YardstickTurns
from pytest_ortbench.yardstick.measuring.best_known import quiet_low_ns, with_best
from tests.results_factory import make_samples, make_turns, make_yardstick

SAMPLES = make_samples()


@pytest.fixture(autouse=True)
def _one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ortbench.yardstick.measuring.best_known._machine", lambda: "abc")


def best(folder: Path, turns: YardstickTurns, samples: Samples = SAMPLES) -> int | None:
    return with_best(replace(turns, best_ns=None), samples, folder).best_ns


def test_quiet_turns_make_it_better_and_never_worse(tmp_path: Path) -> None:
    first = best(tmp_path, make_turns(unit_ns=500_000))
    assert first is not None
    assert 470_000 < first < 500_000
    assert best(tmp_path, make_turns(unit_ns=600_000)) == first
    faster = best(tmp_path, make_turns(unit_ns=400_000))
    assert faster is not None
    assert faster < first
    assert best(tmp_path, make_turns(unit_ns=500_000)) == faster


def test_each_yardstick_and_each_machine_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = best(tmp_path, make_turns(unit_ns=400_000))
    other = make_turns(unit_ns=500_000, yardstick=make_yardstick(version="0.3.31"))
    assert best(tmp_path, other) != fast
    monkeypatch.setattr("pytest_ortbench.yardstick.measuring.best_known._machine", lambda: "other")
    assert best(tmp_path, make_turns(unit_ns=500_000)) != fast
    assert len(json.loads((tmp_path / "yardsticks.json").read_bytes())["best_ns"]) == 3


@pytest.mark.parametrize(
    ("turns", "samples"),
    [
        ({"rounds": 19}, {}),
        ({"slower": (1.0, 1.3)}, {}),
        ({"cpus": 0.9}, {}),
        ({"yardstick": make_yardstick("parallel", threads=2), "cpus": 1.5}, {}),
        ({}, {"steal_ratio": 0.02}),
        ({}, {"throttled_ns": 5}),
    ],
)
def test_disturbed_turns_say_nothing(
    tmp_path: Path, turns: dict[str, Any], samples: dict[str, Any]
) -> None:
    disturbed = make_turns(unit_ns=400_000, **turns)
    beside = replace(SAMPLES, **samples)
    assert quiet_low_ns(disturbed, beside) is None
    assert best(tmp_path, disturbed, beside) is None
    assert list(tmp_path.iterdir()) == []


def test_disturbed_turns_are_told_what_is_known(tmp_path: Path) -> None:
    quiet = best(tmp_path, make_turns())
    assert best(tmp_path, make_turns(cpus=0.5)) == quiet


def test_the_nearest_way_between_cpus_is_known_of_any_worker_with_enough_rounds(
    tmp_path: Path,
) -> None:
    def nearest(*ways: int | None, rounds: int = 100, cpus: float = 1.0) -> int | None:
        turns = make_turns(handover_ns=ways, rounds=rounds, cpus=cpus)
        return with_best(turns, SAMPLES, tmp_path).best_handover_ns

    assert nearest(None) is None
    assert nearest(400, rounds=19) is None
    # Other work makes it longer, and never shorter.
    assert nearest(900, 400, 700, cpus=0.5) == 400
    assert nearest(900) == 400
    assert nearest(350, None) == 350
    assert with_best(make_turns(), SAMPLES, tmp_path).best_handover_ns is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[" * 100_000, b"7", b'{"version": 1}', b'{"version": 9, "best_ns": {}}',
     b'{"version": 1, "best_ns": {"abc K": -4}}', b'{"version": 1, "best_ns": {"abc K": "x"}}',
     b'{"version": 1, "best_ns": {"abc K": 1e400}}', b'{"version": 1, "best_ns": {"abc K": true}}'],
)  # fmt: skip
def test_bad_content_is_no_failure_and_is_written_over(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "yardsticks.json"
    file.write_bytes(content.replace(b"K", make_yardstick().identity.encode()))
    assert best(tmp_path, make_turns(cpus=0.5)) is None
    quiet = best(tmp_path, make_turns())
    assert quiet is not None
    assert list(json.loads(file.read_bytes())["best_ns"].values()) == [quiet]


def test_a_folder_that_can_not_be_written_to_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert best(tmp_path / "file" / "cache", make_turns()) is not None


def test_the_file_stays_small(tmp_path: Path) -> None:
    file = tmp_path / "yardsticks.json"
    many = {f"machine {index}": index + 1 for index in range(1000)}
    file.write_text(json.dumps({"version": 1, "best_ns": many}))
    best(tmp_path, make_turns())
    kept = json.loads(file.read_bytes())["best_ns"]
    assert len(kept) == 200
    assert f"abc {make_yardstick().identity}" in kept


def test_a_worker_without_a_yardstick_stays_as_it_is(tmp_path: Path) -> None:
    absent = YardstickTurns(absence="off")
    assert with_best(absent, SAMPLES, tmp_path) is absent
