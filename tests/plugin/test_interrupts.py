"""Ctrl-C: the screen is clean, the table comes, and nothing that takes long stands in its way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ortbench.plugin import outputs
from pytest_ortbench.plugin.bench import Bench
from pytest_ortbench.plugin.interrupts import Shield, with_lines
from pytest_ortbench.plugin.progress import Progress
from tests.results_factory import make_case

from .conftest import QUICK

ModelFile = Callable[..., Path]


@pytest.fixture
def shield() -> Iterator[Shield]:
    """A shield where interrupts count, also if these tests were started in the background."""
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    made = Shield()
    yield made
    made.down()
    signal.signal(signal.SIGINT, outside)


def test_a_shield_takes_one_interrupt_and_the_next_counts(shield: Shield) -> None:
    before = signal.getsignal(signal.SIGINT)
    shield.up()
    os.kill(os.getpid(), signal.SIGINT)
    assert shield.taken
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_whoever_holds_a_shield_that_is_up_leaves_it_up(shield: Shield) -> None:
    before = signal.getsignal(signal.SIGINT)
    with shield.held():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    shield.up()
    with shield.held():
        pass
    assert signal.getsignal(signal.SIGINT) is not before
    shield.down()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_where_no_line_is_costs_no_document(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        CODE = compile("raise KeyboardInterrupt", "nowhere", "exec").replace(co_linetable=b"")

        def test_it():
            exec(CODE)
        """
    )
    result = pytester.runpytest_subprocess("mlp.onnx", ".", "-k", "latency or test_it", *QUICK)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (document,) = pytester.path.glob("results/*/run.json")
    assert [case["status"] for case in json.loads(document.read_text())["cases"]] == ["measured"]


def test_a_deep_traceback_gets_its_lines_too() -> None:
    code = compile("g(n)", "nowhere", "exec").replace(co_linetable=b"")

    def deep(left: int) -> None:
        if not left:
            raise KeyboardInterrupt
        exec(code, {"g": deep, "n": left - 1})

    with pytest.raises(KeyboardInterrupt) as caught:
        deep(100)
    lines = [entry.lineno for entry in type(caught.traceback)(with_lines(caught.tb))]
    assert len(lines) == 202
    assert lines.count(code.co_firstlineno - 1) == 100


def test_ignored_interrupts_stay_ignored(shield: Shield) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        shield.up()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_status_is_erased_when_a_case_is_interrupted() -> None:
    screen = StringIO()
    writer = SimpleNamespace(fullwidth=100, width_of_current_line=10, _file=screen)
    reporter = SimpleNamespace(isatty=True, verbosity=0, _tw=writer)
    progress = Progress(reporter)  # type: ignore[arg-type]

    def interrupted(*_: object) -> None:
        progress.begin(make_case())
        progress.phase("measure")
        raise KeyboardInterrupt

    bench = object.__new__(Bench)
    bench.config = SimpleNamespace()  # type: ignore[assignment]
    vars(bench)["progress"] = progress
    vars(bench)["execution"] = SimpleNamespace(result=interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.result(SimpleNamespace())  # type: ignore[arg-type]
    assert make_case().case_id in screen.getvalue()
    assert screen.getvalue().endswith("\x1b7\x1b[K\x1b8"), (
        "nothing behind the cursor but an erasure"
    )


_STOPPED = """
    def test_first(ortbench):
        assert ortbench.latency().p50 > 0

    def test_second():
        raise KeyboardInterrupt
"""


def test_after_an_interrupt_the_table_comes_without_plots_and_canary(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(_STOPPED)
    result = pytester.runpytest_inprocess(
        "--ort-models=mlp.onnx", "--ort-html=page.html", "-p", "no:benchmark", *QUICK,
        no_reraise_ctrlc=True,
    )  # fmt: skip
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (document,) = pytester.path.glob("results/*/run.json")
    assert not list(pytester.path.glob("results/*/plots"))
    assert not (pytester.path / "page.html").exists()
    place = document.relative_to(pytester.path)
    result.stdout.fnmatch_lines(
        [
            "*= ortbench =*",
            "* native/cpu/b1 *",
            f"run: {place}",
            f"left out *: canary, plots (ortbench plot {place}), *report {place})",
        ]
    )
    assert '"canary":null' in document.read_text().replace(" ", "")


def test_a_second_interrupt_costs_neither_table_nor_document(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(_STOPPED)
    pytester.makeconftest(
        """
        import os
        import signal

        def pytest_sessionfinish():
            os.kill(os.getpid(), signal.SIGINT)
        """
    )
    command = [sys.executable, "-m", "pytest", "--ort-models=mlp.onnx", *QUICK]
    ended = subprocess.run(
        command, cwd=pytester.path, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == pytest.ExitCode.INTERRUPTED
    assert "native/cpu/b1" in ended.stdout
    assert ": canary, plots " in ended.stdout
    assert "INTERNALERROR" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert list(pytester.path.glob("results/*/run.json"))


def test_an_interrupt_of_the_plots_costs_the_plots_only(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    model_file()
    monkeypatch.setattr(outputs, "_write_plots", interrupted)
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "-p", "no:benchmark", *QUICK)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["left out *: plots (*results/*"])
