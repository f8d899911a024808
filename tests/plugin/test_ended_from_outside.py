"""What another plugin ends in the middle, a time limit above all, is begun once a case."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.execution import execution as engine
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.plugin.bench import Bench

from .conftest import QUICK

DOCUMENT = ("--ort-no-results", "--ort-json=run.json")


@pytest.mark.parametrize(
    "error",
    [
        pytest.fail.Exception("Timeout (>3.0s)"),
        TimeoutError("too slow"),
        asyncio.CancelledError("cancelled"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_case_is_not_begun_again(
    pytester: pytest.Pytester,
    model_file: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    begun: list[object] = []

    def ended(*arguments: object) -> None:
        begun.append(arguments)
        raise error

    monkeypatch.setattr(engine, "measure", ended)
    model_file()
    chosen = "test_latency or test_memory or test_accuracy"
    result = pytester.runpytest("mlp.onnx", "-k", chosen, *QUICK, *DOCUMENT)
    # The test that it struck, one that tells why there is no number, and one that need not.
    result.assert_outcomes(failed=2, skipped=1)
    assert len(begun) == 1
    (entry,) = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert (entry["status"], entry["failure"]["phase"]) == ("error", "measure")
    assert str(error) in entry["failure"]["message"]


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (KeyboardInterrupt(), 0),
        (SystemExit(), 0),
        (pytest.exit.Exception("enough"), 0),
        (UsageError("a wrong option"), 0),
        (pytest.fail.Exception("Timeout (>3.0s)"), 1),
        (OSError("no such thing"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_ends_the_run_is_no_failure_of_the_case(error: BaseException, kept: int) -> None:
    reasons: list[str] = []

    def interrupted(*_: object) -> None:
        raise error

    bench = object.__new__(Bench)
    vars(bench)["config"] = SimpleNamespace()
    vars(bench)["name_of"] = lambda _: "m/native/cpu/b1"
    vars(bench)["progress"] = SimpleNamespace(rest=lambda: None)
    vars(bench)["execution"] = SimpleNamespace(
        result=interrupted, give_up=lambda _, reason: reasons.append(reason)
    )
    with pytest.raises(type(error)):
        bench.result(cast(Planned, SimpleNamespace()))
    assert len(reasons) == kept


def test_a_time_limit_of_another_plugin_shows_nothing_of_the_engine(
    pytester: pytest.Pytester, model_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        pytest.fail("Timeout (>3.0s)")

    monkeypatch.setattr(engine, "measure", ended)
    model_file()
    result = pytester.runpytest("mlp.onnx", "-k", "test_latency", *QUICK, *DOCUMENT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("Timeout (>3.0s)")
    result.stdout.no_fnmatch_line("*engine.py*")


def test_a_pass_is_not_begun_again(
    pytester: pytest.Pytester, model_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []

    def ended(*arguments: object, keep: object) -> None:
        begun.append(arguments)
        raise TimeoutError("too slow")

    monkeypatch.setattr(engine, "carry_out", ended)
    model_file()
    chosen = "test_latency or test_memory"
    pytester.runpytest("mlp.onnx", "-k", chosen, *QUICK, *DOCUMENT, "--ort-startup")
    assert len(begun) == 1
    (entry,) = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert entry["status"] == "measured"
