"""Placement of a session's nodes, proven by a profiled run of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.worker.placement import read_profile
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: The first run is left out of the times, so two more where they are cheap.
_RUNS = 3
_CHEAP_NS = 1_000_000_000


def profile(
    model: str | bytes,
    provider: Provider,
    config: SessionConfig,
    feeds: Mapping[str, object],
    *,
    threads: int,
) -> tuple[Placement, InferenceSession]:
    """Run a model with the profiler on, and read from its events what ran where.

    No graph is recorded, since a replay has no nodes. The profile's files are removed; the session,
    whose profiling is over, can go on computing.

    Args:
        model: Path of the file, or its bytes.
        provider: Where it should run.
        config: Session options.
        feeds: Values of the inputs.
        threads: Intra-op threads.

    Returns:
        The placement, and the session.

    Raises:
        Exception: what :func:`~pytest_ortbench.worker.session.create` and ONNX Runtime raise.
    """
    # Long after the start, to which it would add.
    from pytest_ortbench.core.own_folder import OwnFolder

    # A session that failed has its trace open still, which Windows does not remove.
    with OwnFolder("profile") as folder:
        options = session_options(config, threads=threads, profile_prefix=folder / "p")
        session, _ = create(model, without_capture(provider), options)
        started = time.perf_counter_ns()
        for _ in range(_RUNS):
            session.run(None, feeds)
            if time.perf_counter_ns() - started > _CHEAP_NS:
                break
        file = Path(session.end_profiling())
        placement = read_profile(
            file,
            provider.name,
            links=provider.links if provider.then else (),
            model=model,
            session=session,
        )
    return placement, session
