"""Does a provider really run here? Two tiny models say so; a provider list does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance, read_text
from pytest_ortbench.core.measurement import Placement
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.schema.runtime_questions import ChunkTaken, Probed, ProbeProvider, TakeChunk
from pytest_ortbench.worker.cpu_arena import ArenaMissing
from pytest_ortbench.worker.plugins import ProviderMissing
from pytest_ortbench.worker.profiling import profile
from pytest_ortbench.worker.session import OptionIgnored, create, session_options
from pytest_ortbench.worker.state import WorkerState
from pytest_ortbench.worker.tiny import (
    MATRIX_PRODUCT,
    QUANTISED_MODELS,
    TINY_MODELS,
    TinyModel,
    tiny_feeds,
)

if TYPE_CHECKING:
    pass


def probe_provider(question: ProbeProvider, state: WorkerState) -> Probed:
    """Run tiny models on a provider and say what executed them."""
    state.import_runtime()
    state.enter("session")
    return probe(question.provider)


def probe(provider: Provider) -> Probed:
    """Run the tiny models on a provider, the quantised ones if it takes none of the others.

    Returns:
        What executed each, and why those that did not run did not. One is enough: *seen*, ggml
        runs matrix products and refuses convolutions.

    Raises:
        Exception: what creating and running a session raises, if no model ran.
    """
    placements: dict[str, Placement] = {}
    errors: dict[str, Exception] = {}
    for models in (TINY_MODELS, QUANTISED_MODELS):
        for model in models:
            try:
                placements[model.name] = _placement(model, provider)
            except (ProviderMissing, OptionIgnored):
                # No other model will change that.
                raise
            except Exception as error:  # noqa: BLE001 - native errors have no common base class
                errors[model.name] = error
        if any(placement.executed.get(provider.name) for placement in placements.values()):
            break
    if not placements:
        raise next(iter(errors.values()))
    return Probed(
        placements=placements, refused={name: str(error) for name, error in errors.items()}
    )


def _placement(model: TinyModel, provider: Provider) -> Placement:
    placement, _ = profile(
        model.content, provider, SessionConfig(), tiny_feeds(model), threads=allowance().threads
    )
    return placement


_STATM = Path("/proc/self/statm")


def take_chunk(question: TakeChunk, state: WorkerState) -> ChunkTaken:
    """Run a tiny model in an arena with a large first chunk, and say what the process took."""
    state.import_runtime()
    state.enter("session")
    config = SessionConfig(
        arena_extend_strategy=question.strategy, arena_initial_chunk_bytes=question.chunk_bytes
    )

    def run(config: SessionConfig) -> object:
        options = session_options(config, threads=1)
        session, _ = create(MATRIX_PRODUCT.content, Provider(alias="cpu", name=CPU), options)
        session.run(None, tiny_feeds(MATRIX_PRODUCT))
        return session

    # What any session makes once is there before.
    plain = run(SessionConfig())
    before = _mapped_bytes()
    try:
        in_arena = run(config)
    except ArenaMissing as error:
        return ChunkTaken(reason=str(error))
    after = _mapped_bytes()
    del plain, in_arena
    if before is None or after is None:
        return ChunkTaken(reason="this system does not tell how much memory a process has mapped")
    return ChunkTaken(risen_bytes=after - before)


def _mapped_bytes() -> int | None:
    """Size of what this process has mapped, touched or not; ``None`` where nothing tells."""
    fields = read_text(_STATM).split()
    return int(fields[0]) * os.sysconf("SC_PAGE_SIZE") if fields else None
