"""The status line: what it says, and that nothing about a screen ever costs a case."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from types import SimpleNamespace
from typing import TextIO

import pytest

from pytest_ortbench.plugin.bench import Bench
from pytest_ortbench.plugin.progress import Progress
from tests.results_factory import make_case, make_failure, make_result


def _progress(screen: TextIO, *, width: int = 100) -> Progress:
    writer = SimpleNamespace(fullwidth=width, width_of_current_line=10, _file=screen)
    return Progress(SimpleNamespace(isatty=True, verbosity=0, _tw=writer))  # type: ignore[arg-type]


def _shown(screen: str) -> str:
    """What stands on the screen now: the last text between saving the cursor and erasing."""
    return screen.rpartition("\x1b7")[2].partition("\x1b[K")[0].strip()


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "caf\\udce9/native/cpu/b1 · measure · 0/0"),
        ("latin-1", "caf\\udce9/native/cpu/b1 · measure · 0/0"),
        ("ascii", "caf\\udce9/native/cpu/b1 - measure - 0/0"),
    ],
)
def test_what_the_screen_can_not_write_is_spelt_out(encoding: str, expected: str) -> None:
    # The name of a file that is not UTF-8 reaches Python as half a character.
    case = make_case(model="mlp")
    case = replace(case, model=replace(case.model, name="caf\udce9"))
    raw = BytesIO()
    progress = _progress(TextIOWrapper(raw, encoding=encoding))
    progress.begin(case)
    progress.phase("measure")
    assert _shown(raw.getvalue().decode(encoding)) == expected


def test_a_long_status_ends_where_the_line_does() -> None:
    raw = BytesIO()
    progress = _progress(TextIOWrapper(raw, encoding="ascii"), width=43)
    progress.begin(make_case(model="a_model_of_a_long_name"))
    progress.phase("measure")
    assert _shown(raw.getvalue().decode("ascii")) == "a_model_of_a_long_name/native~"


def test_a_screen_that_is_gone_costs_the_status_and_no_case() -> None:
    screen = StringIO()
    progress = _progress(screen)
    screen.close()
    progress.begin(make_case())
    progress.phase("measure")
    progress.end(measured=True)


class _Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


def test_time_left_is_that_of_the_cases_still_to_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ten cases: six taken from an interrupted run, one refused, three measured for 60 s each.
    # Shared among all that are over, the first minute would promise 9 s a case and 0:25 for two.
    clock = _Clock()
    monkeypatch.setattr("pytest_ortbench.plugin.progress.time", clock)
    screen = StringIO()
    progress = _progress(screen)
    clock.now_s += 300.0  # environments are made
    for _ in range(7):
        progress.expect(10, to_measure=3)
        progress.begin(make_case())
        progress.end(measured=False)
    said = []
    for still in (3, 2, 1):
        progress.expect(10, to_measure=still)
        progress.begin(make_case())
        progress.phase("measure")
        said.append(_shown(screen.getvalue()).partition(" · measure · ")[2])
        clock.now_s += 50.0
        progress.end(measured=True)
        clock.now_s += 10.0  # its gate
    assert said == ["7/10", "8/10 · 2:00 left", "9/10 · 1:00 left"]


def test_cases_that_are_refused_or_taken_over_are_not_still_to_be_measured() -> None:
    here, refused, taken = (make_case(model=name) for name in ("here", "refused", "taken"))
    expected: list[tuple[int, int]] = []
    ended: list[bool] = []
    bench = object.__new__(Bench)
    vars(bench)["planned"] = {
        here.key: SimpleNamespace(refusal=None),
        refused.key: SimpleNamespace(refusal=make_failure()),
        taken.key: SimpleNamespace(refusal=None),
    }
    bench._ended = set()
    hook = SimpleNamespace(pytest_ortbench_case_measured=lambda **_: None)
    bench.config = SimpleNamespace(hook=hook)  # type: ignore[assignment]
    vars(bench)["execution"] = SimpleNamespace(finished={taken.key: make_result(case=taken)})
    vars(bench)["progress"] = SimpleNamespace(
        expect=lambda cases, *, to_measure: expected.append((cases, to_measure)),
        begin=lambda *_: None,
        end=lambda *, measured: ended.append(measured),
        rest=lambda: None,
    )
    for case in (refused, taken, here, here):
        bench.begin(case)
        bench.end(make_result(case=case))
    assert expected == [(3, 1), (3, 1), (3, 1), (3, 0)]
    assert ended == [False, False, True]
