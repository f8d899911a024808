"""Whether the work of a model depends on the values that were drawn: sizes and durations by set.

Durations are drawn numbers, on a clock of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import Accuracy
from pytest_ortbench.worker import accuracy as worker_accuracy
from pytest_ortbench.worker.accuracy import compare, write_reference
from tests.results_factory import make_accuracy, make_case, make_result


@dataclass
class _Clock:
    now_ns: int = 0

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def monotonic(self) -> float:
        return self.now_ns * 1e-9


#: How long a run takes, in microseconds, by its values.
Duration = Callable[[Any], float]


@dataclass
class _Session:
    """Gives the positive values of its input, or all of them."""

    chooses: bool = False
    calls: int = 0
    clock: _Clock = field(default_factory=_Clock)
    duration_us: Duration = lambda _: 0
    outputs: list[SimpleNamespace] = field(
        default_factory=lambda: [SimpleNamespace(name="y", type="tensor(float)")]
    )

    def get_inputs(self) -> Sequence[SimpleNamespace]:
        return [SimpleNamespace(name="x", type="tensor(float)")]

    def get_outputs(self) -> Sequence[SimpleNamespace]:
        return self.outputs

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def run(self, _names: object, feeds: Mapping[str, object], /) -> Sequence[object]:
        self.calls += 1
        values = np.asarray(feeds["x"])
        self.clock.now_ns += int(1000 * self.duration_us(values))
        return [values[values > 0] if self.chooses else values]


def _compared(tmp_path: Path, session: _Session) -> Accuracy:
    spec = InputSpec(name="x", type="tensor(float)", shape=(1, 64), hint=ValueHint(kind="normal"))
    write_reference(tmp_path / "reference.npz", session=session, specs=[spec], seed=0)
    return compare(session, tmp_path / "reference.npz")


def test_sizes_of_outputs_are_kept_for_each_set(tmp_path: Path) -> None:
    assert _compared(tmp_path, _Session()).set_elements == (64,) * 8
    found = _compared(tmp_path, _Session(chooses=True)).set_elements
    assert len(found) == 8
    assert min(found) < max(found) < 64


def _flag(
    sizes: tuple[int, ...], pairs_us: Sequence[tuple[float, float]] = (), *, path: str = ""
) -> str:
    accuracy = replace(
        make_accuracy(),
        set_elements=sizes,
        set_pairs_ns=tuple((int(1000 * slow), int(1000 * fast)) for slow, fast in pairs_us),
    )
    return _flag_of(accuracy, path=path)


def _flag_of(accuracy: Accuracy, *, path: str = "") -> str:
    case = make_case()
    case = replace(case, inputs=tuple(replace(spec, path=path) for spec in case.inputs))
    result = replace(make_result(case=case), accuracy=accuracy)
    return {flag.name: flag.detail for flag in flags_of(result)}.get("INPUT-DEPENDENT", "")


_SLOW, _LUCKY = (900.0, 500.0), (500.0, 510.0)


@pytest.mark.parametrize(
    ("sizes", "pairs_us", "flagged"),
    [
        ((10, 10), [_LUCKY] * 16, False),
        ((10, 12), [_LUCKY] * 16, True),
        ((10, 10), [_SLOW] * 16, True),
        ((10, 10), [_SLOW] * 14 + [_LUCKY] * 2, True),
        ((10, 10), [_SLOW] * 13 + [_LUCKY] * 3, False),
        ((10, 10), [_SLOW] * 8, True),
        ((10, 10), [_SLOW] * 7, False),
        ((10, 10), [(600, 500)] * 16, False),
        ((10, 10), [(90, 10)] * 16, False),
        ((10,), [], False),
        ((), [], False),
    ],
)
def test_sizes_or_durations_that_differ_are_flagged(
    sizes: tuple[int, ...], pairs_us: list[tuple[float, float]], *, flagged: bool
) -> None:
    assert bool(_flag(sizes, pairs_us)) == flagged
    assert _flag(sizes, pairs_us, path="x.npz") == ""


def test_the_spread_is_said() -> None:
    detail = _flag((10, 4000), [_SLOW] * 16)
    for part in ("10 to 4,000 values", "500 µs to 900 µs", "2 random input sets"):
        assert part in detail


def _noise(draw: random.Random) -> Iterator[float]:
    """Factors of a busy machine: bursts over several runs, and tails without a mean."""
    burst, left = 1.0, 0
    while True:
        if left == 0:
            burst, left = draw.choice((1.0, 1.0, 2.0, 5.0)), draw.randint(1, 6)
        left -= 1
        yield burst * (1 + 0.1 * (draw.random() ** -1 - 1))


def _alarms(factor: float, trials: int) -> int:
    """How many of so many cases are flagged whose one set takes ``factor`` times the other."""
    draw = random.Random(7)
    found = 0
    for _ in range(trials):
        noise = _noise(draw)
        pairs = []
        for _ in range(16):
            sides = {0: 500 * factor, 1: 500.0}
            took = {side: sides[side] * next(noise) for side in draw.sample((0, 1), 2)}
            pairs.append((took[0], took[1]))
        found += bool(_flag((10, 10), pairs))
    return found


def test_noise_alone_is_flagged_in_less_than_one_case_of_200() -> None:
    assert _alarms(1, 2_000) < 10
    # In the same noise every other doubled duration is found, and most larger ones.
    assert _alarms(2, 200) > 80
    assert _alarms(4, 200) > 160


def _run_beside_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, duration_us: Duration
) -> Accuracy:
    session = _Session(duration_us=duration_us)
    monkeypatch.setattr(worker_accuracy, "time", session.clock)
    return _compared(tmp_path, session)


def test_work_that_values_double_is_flagged_beside_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(3)

    def doubled(values: Any) -> float:
        return 500.0 * (2 if values.sum() > 0 else 1) * (1 + 0.05 * (draw.random() ** -1 - 1))

    accuracy = _run_beside_noise(tmp_path, monkeypatch, doubled)
    assert len(accuracy.set_pairs_ns) == 16
    assert _flag_of(accuracy)


def test_a_busy_moment_is_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = _noise(random.Random(5))
    accuracy = _run_beside_noise(tmp_path, monkeypatch, lambda _: 500 * next(noise))
    assert accuracy.set_durations_ns
    assert _flag_of(accuracy) == ""


def test_equal_sets_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accuracy = _run_beside_noise(tmp_path, monkeypatch, lambda _: 500)
    assert (accuracy.set_durations_ns, accuracy.set_pairs_ns) == ((500_000,) * 8, ())


def test_what_takes_too_long_for_eight_rounds_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tripled(values: Any) -> float:
        return 250_000.0 * (3 if values.sum() > 0 else 1)

    accuracy = _run_beside_noise(tmp_path, monkeypatch, tripled)
    assert accuracy.set_pairs_ns == ()
    assert _flag_of(accuracy) == ""
