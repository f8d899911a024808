"""Callers whose runs would mix on a device that a process has once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.worker import calling
from pytest_ortbench.worker.calling import require_safe_callers
from tests.launch.cases import case_of


def refused(
    monkeypatch: pytest.MonkeyPatch,
    *,
    provider: str = "webgpu",
    compiled_in: bool = True,
    sessions: int = 1,
    concurrency: int = 1,
    io: str = "end-to-end",
) -> WorkerError | None:
    monkeypatch.setattr(calling, "is_compiled_in", lambda _: compiled_in)
    case = replace(
        case_of(Path("none.onnx")),
        provider=parse_provider(provider),
        sessions=sessions,
        concurrency=concurrency,
        io=io,
    )
    try:
        require_safe_callers(case)
    except WorkerError as error:
        return error
    return None


def test_two_sessions_at_a_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(monkeypatch, sessions=2)
    assert error is not None
    assert error.failure.kind == "unsupported"
    assert "--ort-processes" in error.failure.hint


def test_bound_outputs_are_refused_with_several_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(monkeypatch, concurrency=2, io="device")
    assert error is not None
    assert error.failure.kind == "unsupported"
    assert "--ort-io=end-to-end" in error.failure.hint


def test_callers_of_one_session_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(monkeypatch, concurrency=3) is None
    assert refused(monkeypatch, io="device") is None


def test_what_has_commands_of_its_own_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(monkeypatch, sessions=2, compiled_in=False) is None
    assert refused(monkeypatch, provider="cuda", sessions=2, concurrency=2, io="device") is None
