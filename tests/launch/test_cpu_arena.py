"""An arena of the CPU is believed in where it was seen to do something."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.launcher import CHUNK_BYTES, ArenaProofs, ProcessLauncher
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.runtime_questions import ChunkTaken, TakeChunk
from tests.results_factory import make_case

WHOLE, EXACT = "kNextPowerOfTwo", "kSameAsRequested"


def in_arena(provider: str = "cpu", runtime: str = "current") -> Case:
    case = make_case()
    return replace(
        case,
        provider=parse_provider(provider),
        runtime=replace(case.runtime, label=runtime),
        session=replace(case.session, arena_extend_strategy=EXACT),
    )


class Stand:
    """A runtime whose processes rise by so much, by strategy."""

    def __init__(self, whole: int | None, exact: int | None) -> None:
        self.rises = {WHOLE: whole, EXACT: exact}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, question: TakeChunk, runtime: Runtime) -> ChunkTaken:
        self.asked.append((runtime.label, question.strategy))
        rise = self.rises[question.strategy]
        return ChunkTaken(risen_bytes=rise, reason="" if rise is not None else "not told")


@pytest.mark.parametrize(
    ("whole", "exact", "proven"),
    [
        (CHUNK_BYTES, 0, True),
        (CHUNK_BYTES + 4096, 8192, True),
        (0, 0, False),
        (CHUNK_BYTES - 1, 0, False),
        (CHUNK_BYTES, CHUNK_BYTES, False),
        (None, 0, False),
        (CHUNK_BYTES, None, False),
        (None, None, False),
    ],
)
def test_both_settings_must_have_been_seen(
    whole: int | None, exact: int | None, proven: bool
) -> None:
    failure = ArenaProofs(Stand(whole, exact)).refusal(in_arena())
    assert (failure is None) is proven
    if failure is not None:
        assert (failure.kind, failure.phase) == ("unsupported", "session")


def test_a_runtime_is_asked_once_and_only_if_an_arena_is_wanted() -> None:
    stand = Stand(CHUNK_BYTES, 0)
    proofs = ArenaProofs(stand)
    assert proofs.refusal(make_case()) is None
    assert stand.asked == []
    for runtime in ("current", "older", "current"):
        assert proofs.refusal(in_arena(runtime=runtime)) is None
    assert stand.asked == [
        (label, strategy) for label in ("current", "older") for strategy in (WHOLE, EXACT)
    ]


def test_the_arena_is_no_other_providers() -> None:
    stand = Stand(CHUNK_BYTES, 0)
    failure = ArenaProofs(stand).refusal(in_arena("openvino"))
    assert failure is not None
    assert stand.asked == []


def test_a_real_session_takes_its_first_chunk_from_the_arena(launcher: ProcessLauncher) -> None:
    deadline = time.monotonic() + 120
    whole, exact = (
        launcher.ask(TakeChunk(strategy=strategy, chunk_bytes=CHUNK_BYTES), deadline=deadline)
        for strategy in (WHOLE, EXACT)
    )
    assert whole.risen_bytes is not None
    assert exact.risen_bytes is not None
    assert exact.risen_bytes < CHUNK_BYTES <= whole.risen_bytes


def test_a_case_whose_arena_proves_nothing_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = ProcessLauncher()
    monkeypatch.setattr(launcher, "ask", lambda *_, **__: ChunkTaken(risen_bytes=0))
    with pytest.raises(WorkerError) as raised:
        launcher.open(in_arena(), worker=0, deadline=time.monotonic() + 60)
    assert raised.value.failure.kind == "unsupported"
