"""The status line: what it says, and that nothing about a screen ever costs a case."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO, cast

import pytest
from _pytest.terminal import TerminalReporter

from pytest_ortbench.core.outcome import PHASES
from pytest_ortbench.plugin.bench import Bench
from pytest_ortbench.plugin.progress import Progress
from pytest_ortbench.session import Session
from tests.results_factory import make_case, make_result


def reporter_of(**parts: object) -> TerminalReporter:
    """Return a reporter of pytest as far as it is asked."""
    return cast("TerminalReporter", SimpleNamespace(**parts))


def _progress(screen: TextIO, *, width: int = 100) -> Progress:
    writer = SimpleNamespace(fullwidth=width, width_of_current_line=10, _file=screen)
    return Progress(reporter_of(isatty=True, verbosity=0, _tw=writer))


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


def test_slow_collecting_is_told_once_with_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now_s[0])
    monkeypatch.setattr("pytest_ortbench.plugin.progress.time", clock)
    lines: list[str] = []
    writer = SimpleNamespace(fullwidth=100, width_of_current_line=0, _file=StringIO())
    reporter = reporter_of(isatty=False, verbosity=0, _tw=writer, write_line=lines.append)
    progress = Progress(reporter)
    progress.phase("importing")
    assert lines == []
    now_s[0] += 5.0
    progress.phase("loading")
    progress.phase("importing")
    assert len(lines) == 1
    assert "loading" in lines[0]
    progress = Progress(reporter)
    progress.expect(1, None)
    now_s[0] += 5.0
    progress.phase("measuring")
    assert len(lines) == 1


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
    progress.end()


class _Left:
    """A countdown that says what it is told to."""

    left_s = 119.6


def test_the_time_left_stands_behind_the_count() -> None:
    screen = StringIO()
    progress = _progress(screen)
    for _ in range(8):
        progress.expect(10, _Left())  # type: ignore[arg-type]  # nothing else of it is asked
        progress.begin(make_case())
        progress.end()
    progress.begin(make_case())
    progress.phase("measure")
    assert _shown(screen.getvalue()).endswith("8/10 · about 2:00 left")


def test_a_case_counts_once_however_many_passes_it_gets() -> None:
    case = make_case(model="here")
    counted: list[str] = []
    bench = object.__new__(Bench)
    bench._ended = set()
    hook = SimpleNamespace(pytest_ortbench_case_measured=lambda **_: None)
    bench.config = SimpleNamespace(hook=hook)  # type: ignore[assignment]
    bench.budget = None
    vars(bench)["planned"] = {case.key: None}
    vars(bench)["countdown"] = SimpleNamespace(
        begin=lambda _: counted.append("begin"),
        end=lambda _: counted.append("end"),
        left_s=60.0,
    )
    told: list[float] = []
    vars(bench)["session"] = SimpleNamespace(machine=SimpleNamespace(expect=told.append))
    vars(bench)["progress"] = SimpleNamespace(
        expect=lambda *_: None, begin=lambda _: None, end=lambda: None, rest=lambda: None
    )
    for _ in range(2):
        bench.begin(case)
        bench.end(make_result(case=case))
    assert counted == ["begin", "end", "begin"]
    assert told == [60.0, 60.0]


def test_what_a_worker_does_is_said_in_words_and_not_by_the_name_of_its_phase(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    with Session(tmp_path, notify=said.append, on_phase=said.append) as session:
        on_phase = session.launcher._on_phase
        assert on_phase is not None
        for name in PHASES:
            on_phase(name)
    assert said == list(PHASES.values())
