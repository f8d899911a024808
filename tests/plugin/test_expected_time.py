"""How long a run takes is told before it and while it runs; one of over a day is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.planning.compilations import COMPILED_FOLDER, compilation_key
from pytest_ortbench.planning.estimate import Costs, compilation_takes_s, conversion_takes_s
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.plugin import expected_time
from pytest_ortbench.plugin.countdown import Countdown
from pytest_ortbench.plugin.expected_time import (
    making_takes_s,
    refuse_endless,
    time_words,
    to_measure,
)
from tests.refused import refused
from tests.results_factory import make_case, make_failure, make_result, make_runtime_info


def _cases(count: int, **sampling: Any) -> list[Case]:
    case = replace(make_case(), sampling=Sampling(**{"time_s": 5.0, "workers": 3, **sampling}))
    return [replace(case, seed=number, knobs={"threads": str(number)}) for number in range(count)]


def _bench(cases: list[Case], *, taken: int = 0, broken: int = 0) -> Any:
    planned = {
        number: Planned(case=case, refusal=make_failure() if number < broken else None)
        for number, case in enumerate(cases)
    }
    results = dict.fromkeys(range(broken, broken + taken))
    return SimpleNamespace(planned=planned, resumable=SimpleNamespace(results=results), passes={})


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (11.4, "11 s"),
        (33.4, "33 s"),
        (43.0, "45 s"),
        (89.0, "90 s"),
        (99.0, "1 min 40 s"),
        (118.0, "2 min"),
        (296.0, "5 min"),
        (481.0, "8 min"),
        (7100.0, "118 min"),
        (25_200.0, "7 h"),
    ],
)
def test_a_time_is_said_in_one_unit(seconds: float, words: str) -> None:
    assert time_words(seconds) == words


def test_what_is_refused_or_taken_over_takes_no_time() -> None:
    cases = to_measure(_bench(_cases(30), taken=10, broken=5))
    assert [case.seed for case in cases] == list(range(15, 30))


def test_a_run_of_more_than_a_day_is_refused() -> None:
    cases = _cases(15_000)
    with refused(UsageError, "15000 cases", "24 h", hint="--ort-time"):
        refuse_endless(_bench(cases))
    refuse_endless(_bench(cases, taken=12_000))


class _Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    made = _Clock()
    monkeypatch.setattr("pytest_ortbench.plugin.countdown.time", made)
    return made


def test_time_left_is_what_the_cases_that_are_over_took(clock: _Clock) -> None:
    # Each case takes as long as its workers say, and its gate as long again, which nobody expected.
    cases = _cases(3)
    costs = Costs()
    costs.learn(replace(make_result(case=cases[0]), wall_s=0.0))
    each_s = costs.expected(cases[0]).total_s
    countdown = Countdown(Costs(), [(case, ()) for case in cases], end_s=5.0)
    clock.now_s += 300.0  # environments are made
    left = []
    for case in cases:
        countdown.begin(case)
        left.append(countdown.left_s)
        clock.now_s += each_s
        countdown.end(replace(make_result(case=case), wall_s=0.0))
        clock.now_s += each_s
    assert left[1:] == pytest.approx([2 * 2 * each_s + 5.0, 2 * each_s + 5.0], rel=0.02)
    assert countdown.left_s == 5.0


def test_time_left_runs_down_within_a_case(clock: _Clock) -> None:
    (case,) = _cases(1)
    countdown = Countdown(Costs(), [(case, ())])
    countdown.begin(case)
    whole_s = countdown.left_s
    clock.now_s += 2.0
    assert countdown.left_s == pytest.approx(whole_s - 2.0)
    clock.now_s += 1000.0
    assert countdown.left_s == 0.0


def test_a_case_that_takes_no_time_changes_nothing(clock: _Clock) -> None:
    first, second = _cases(2)
    countdown = Countdown(Costs(), [(second, ())])
    before_s = countdown.left_s
    countdown.begin(first)  # refused, or taken from an interrupted run
    clock.now_s += 5.0
    countdown.end(make_result(case=first))
    assert countdown.left_s == before_s


def test_a_case_that_comes_up_late_is_counted_once() -> None:
    (case,) = _cases(1)
    countdown = Countdown(Costs(), [])
    countdown.add(case, ())
    once_s = countdown.left_s
    countdown.add(case, ())
    assert countdown.left_s == once_s > 5.0


def test_starts_are_expected_to_take_as_long_as_beside_the_load_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def costs(load: float) -> Costs:
        monkeypatch.setattr(expected_time, "load_factor", lambda: load)
        launcher = SimpleNamespace(start_s={"current": 2.0})
        options = SimpleNamespace(no_results=True)
        bench: Any = SimpleNamespace(session=SimpleNamespace(launcher=launcher), options=options)
        return expected_time.costs_of(bench)

    (case,) = _cases(1, yardstick="off")
    quiet, busy = costs(1.0), costs(4.0)
    # Half way between one start that was seen and what is usual beside such a load.
    assert busy.start_s["current"] == pytest.approx(2 * quiet.start_s["current"])
    assert busy.usual_start_s == pytest.approx(4 * quiet.usual_start_s)
    assert busy.expected(case).total_s > quiet.expected(case).total_s + 2.0


@pytest.mark.parametrize(("waits", "factor"), [(0.0, 1.0), (2.0, 3.0)])
def test_a_load_counts_as_far_as_a_process_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, waits: float, factor: float
) -> None:
    # Each look at the clock of the thread computes a millisecond, and waits a multiple of it.
    now = {"computed": 0.0, "wall": 50.0}

    def thread_time() -> float:
        now["computed"] += 0.001
        now["wall"] += 0.001 * (1 + waits)
        return now["computed"]

    clock = SimpleNamespace(monotonic=lambda: now["wall"], thread_time=thread_time)
    monkeypatch.setattr(expected_time, "time", clock)
    assert expected_time.load_factor() == pytest.approx(factor, rel=0.05)


def test_few_medians_are_known_early_beside_other_work() -> None:
    alone, beside, busy = (expected_time.unsettled_share(load) for load in (1.0, 1.1, 4.0))
    assert 0 < alone < beside < busy == 1.0


def _making_bench(entries: list[Planned], folder: Path, *, kept: bool = False) -> Any:
    session = SimpleNamespace(
        variants=SimpleNamespace(keeps=lambda _: kept, folder=folder / "variants"),
        launcher=SimpleNamespace(inspect=lambda _: make_runtime_info()),
    )
    planned = {entry.case.key: entry for entry in entries}
    return SimpleNamespace(planned=planned, resumable=None, session=session)


def _converted() -> Conversion:
    recipe = Recipe(name="int8-dynamic", base="int8-dynamic")
    return Conversion(
        recipe=recipe, source="net.onnx", digest="d", size_bytes=1, own_precision="fp32", inputs=()
    )


def test_a_file_that_several_cases_need_is_made_once(tmp_path: Path) -> None:
    first, second = _cases(2)
    entries = [Planned(case=case, conversion=_converted()) for case in (first, second)]
    costs = Costs(start_s={"current": 1.0})
    takes_s = making_takes_s(_making_bench(entries, tmp_path), costs)
    assert takes_s == {first.key: conversion_takes_s(first, costs)}
    assert takes_s[first.key] > 1.0
    assert making_takes_s(_making_bench(entries, tmp_path, kept=True), costs) == {}


def test_compiling_ahead_takes_time_unless_the_file_is_kept(tmp_path: Path) -> None:
    plain, compiled = (
        replace(case, compiled=made) for case, made in zip(_cases(2), (False, True), strict=True)
    )
    bench = _making_bench([Planned(case=case) for case in (plain, compiled)], tmp_path)
    costs = Costs(start_s={"current": 1.0})
    expected = {compiled.key: compilation_takes_s(compiled, costs)}
    assert making_takes_s(bench, costs) == expected
    assert expected[compiled.key] > 1.0
    (tmp_path / COMPILED_FOLDER / compilation_key(compiled, make_runtime_info())).mkdir(
        parents=True
    )
    assert making_takes_s(bench, costs) == {}


def test_a_countdown_knows_what_is_made_first(tmp_path: Path) -> None:
    (case,) = _cases(1)
    costs = Costs()
    besides = Countdown(costs, [(case, ())], besides_s={case.key: 7.0})
    assert besides.left_s == pytest.approx(Countdown(costs, [(case, ())]).left_s + 7.0)


def _asked(parameters: int, size_bytes: int, shape: tuple[int, ...], **sampling: Any) -> Case:
    """A case of a model of the CPU provider, with tokens where its input has two axes."""
    case = make_case()
    kind = "tensor(int64)" if len(shape) == 2 else "tensor(float)"
    return replace(
        case,
        model=replace(case.model, parameters=parameters, size_bytes=size_bytes),
        variant=replace(case.variant, size_bytes=size_bytes),
        inputs=(replace(case.inputs[0], shape=shape, type=kind),),
        sampling=Sampling(**sampling),
    )


def _on_threads(case: Case, threads: int) -> Case:
    session = replace(case.session, intra_op_num_threads=threads)
    return replace(case, session=session, knobs={"threads": str(threads)})


_TAGGER = (1_548_564, 6_200_000)
_DETECTOR = _asked(2_453_416, 9_930_000, (1, 3, 736, 736), time_s=3.0)

#: What runs took on two idle CPUs, by their journals: cases, whether a file of a precision was
#: made, whether a page was written; seconds of the cases with that file, and of canary and figures.
_RECORDED = [
    ([_asked(*_TAGGER, (1, 128))], False, False, 7.25, 2.02),
    ([_asked(*_TAGGER, (size, 128)) for size in (1, 8)], False, True, 15.04, 2.81),
    ([_asked(*_TAGGER, (size, 128)) for size in (1, 8)], False, True, 18.38, 2.81),
    ([_asked(*_TAGGER, (1, 128), time_s=2.0)] * 2, True, False, 10.58, 1.86),
    ([_on_threads(_DETECTOR, threads) for threads in (1, 2)], False, False, 51.63, 2.02),
]


@pytest.mark.parametrize(("cases", "is_made", "has_page", "cases_s", "end_s"), _RECORDED)
def test_what_is_said_beforehand_is_within_a_quarter_of_what_runs_took(
    cases: list[Case],
    is_made: bool,
    has_page: bool,
    cases_s: float,
    end_s: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expected_time, "load_factor", lambda: 1.0)
    made = [None, *[_converted() if is_made else None] * (len(cases) - 1)]
    entries = [
        Planned(case=replace(case, batch=number + 1), conversion=conversion)
        for number, (case, conversion) in enumerate(zip(cases, made, strict=True))
    ]
    bench = _making_bench(entries, tmp_path)
    bench.session.launcher.start_s = {}
    bench.passes = {}
    bench.machine = None
    bench.config = SimpleNamespace(option=SimpleNamespace(collectonly=False))
    bench.options = SimpleNamespace(
        no_results=False,
        results=tmp_path / "results",
        plots=None,
        html=tmp_path / "report.html" if has_page else None,
        against=None,
    )
    said_s = expected_time.countdown_of(bench).left_s
    assert said_s / (cases_s + end_s) == pytest.approx(1.0, abs=0.25)
