"""Combinations of threads, levels, callers and the like: the axes that depend on no model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.session_options import apply_session_options, with_spinning


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One combination of the axes that do not depend on model or provider."""

    batch: int | None
    io: str
    session: SessionConfig
    knobs: dict[str, str]
    concurrency: int
    sessions: int
    call: str

    @property
    def is_plain(self) -> bool:
        """Whether one caller calls one session and waits, with values on the host."""
        return (self.concurrency, self.sessions, self.call, self.io) == (1, 1, "sync", "end-to-end")


def combinations_of(request: PlanRequest) -> Iterator[Combination]:
    """Yield every combination of the axes that depend on no model and no provider."""
    config = SessionConfig(custom_ops=request.custom_ops)
    base = apply_session_options(config, request.session_options)
    batches: tuple[int | None, ...] = request.batch_sizes or (None,)
    threads: tuple[int | None, ...] = request.threads or (None,)
    levels: tuple[str | None, ...] = request.graph_opts or (None,)
    callers: tuple[int | None, ...] = request.concurrency or (None,)
    sessions: tuple[int | None, ...] = request.sessions or (None,)
    spinning: tuple[str | None, ...] = request.spinning or (None,)
    for batch, thread, level, concurrent, several, spin, call, io in itertools.product(
        batches,
        threads,
        levels,
        callers,
        sessions,
        spinning,
        request.calls,
        request.io,
    ):
        session, knobs = base, {}
        if thread is not None:
            session = replace(session, intra_op_num_threads=thread)
            knobs["threads"] = str(thread)
        if level is not None:
            session = replace(session, graph_optimization_level=level)
            knobs["opt"] = level
        if concurrent is not None:
            knobs["concurrency"] = str(concurrent)
        if several is not None:
            knobs["sessions"] = str(several)
        if spin is not None:
            session = with_spinning(session, spin)
            knobs["spin"] = spin
        if call != "sync":
            knobs["call"] = call
        if io != "end-to-end":
            knobs["io"] = io
        yield Combination(
            batch=batch,
            io=io,
            session=session,
            knobs=knobs,
            concurrency=concurrent or 1,
            sessions=several or 1,
            call=call,
        )
