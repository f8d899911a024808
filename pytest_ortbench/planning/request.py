"""What was asked, after options, ini file and marker were merged; combinations of its axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import FIX_DIMS, GRAPH_OPT, SPIN, Sampling, SessionConfig
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.option import OptionRow
from pytest_ortbench.planning.session_options import (
    apply_session_options,
    with_compiling,
    with_spinning,
)

#: Values that axes of few values have.
CALLS = ("sync", "async")
SWITCH_POSITIONS = ("on", "off")
IO_MODES = ("end-to-end", "device")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """The axes of one matrix and what all its cases share.

    Attributes:
        models: Model specifications, as typed.
        providers: Provider specifications, as typed (``all``, ``cuda:1``, …).
        precisions: Names of precisions.
        batch_sizes: Values of the batch axis; empty: 1, or what a model fixes.
        dims: Values of symbolic dimensions; several make an axis.
        threads: Intra-op threads; empty: one case with what the process may use.
        graph_opts: Graph optimisation levels; empty: one case with ``all``.
        concurrency: Callers on each session; empty: one case with one.
        sessions: Sessions in the process; empty: one case with one.
        calls: Ways of calling, ``sync`` and ``async``.
        spinning: Whether waiting threads spin, ``on`` and ``off``; empty: the default.
        tuning: Whether providers search for the fastest way, ``on`` and ``off``; empty: as they do
            by themselves.
        fix_dims: Whether sessions are told the sizes of open dimensions, ``on`` and ``off``; empty:
            where a provider needs it.
        io: ``end-to-end``, ``device``.
        compiled: Whether models are compiled ahead, ``on`` and ``off``; empty: they are not.
        inputs: Real inputs, ``None`` for drawn ones.
        session_options: Session options and config entries, as given.
        provider_options: Provider options by alias.
        exporter: Settings of what exports sources, by its own names.
        sources: Folders of transformers that ONNX decoders were exported from, by the name of the
            model; under the empty name for all others.
        custom_ops: Custom operator libraries.
        of_passes: What passes ask of each case, by the field of the option.
        sampling: How each case is measured.
        seed: Seed of the random inputs.
        dataset: Labelled data that every case is scored on; ``None`` for none.
        labels: Labels of the photos, sounds or lines of text that are fed; ``None`` for none.
        preprocess: How these become values, by setting, as far as the user says it.
        made: What the one model is called that a test made; empty: models have names of their own.
        generate: Whether requests of language models are measured: ``auto``, ``off``, or ``only``
            them.
        engines: What carries them out; empty: what fits the model.
        prompt_tokens: Lengths of their prompts; empty: a documented one.
        new_tokens: Numbers of tokens that they write; likewise.
        depths: Numbers of tokens in the cache before the prompt; empty: none.
        endpoint: Address of a service that runs the model; empty for none.
        serve: What is started to run the model as a service, as ``--ort-serve`` reads it; empty
            for nothing.
        serve_port: Where on loopback it listens.
        serve_name: What it calls the model; empty: the last part of its own name.
        endpoint_encodings: How tensors are written to it; empty: as it says of itself.
    """

    models: tuple[str, ...]
    providers: tuple[str, ...] = ("cpu",)
    precisions: tuple[str, ...] = ("native",)
    batch_sizes: tuple[int, ...] = ()
    dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    threads: tuple[int, ...] = ()
    graph_opts: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    sessions: tuple[int, ...] = ()
    calls: tuple[str, ...] = ("sync",)
    spinning: tuple[str, ...] = ()
    tuning: tuple[str, ...] = ()
    fix_dims: tuple[str, ...] = ()
    io: tuple[str, ...] = ("end-to-end",)
    compiled: tuple[str, ...] = ()
    inputs: Path | None = None
    session_options: dict[str, str] = field(default_factory=dict)
    provider_options: dict[str, dict[str, str]] = field(default_factory=dict)
    exporter: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    custom_ops: tuple[str, ...] = ()
    of_passes: dict[str, Any] = field(default_factory=dict)
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    dataset: Dataset | None = None
    labels: Path | None = None
    preprocess: dict[str, str] = field(default_factory=dict)
    made: str = ""
    generate: str = "auto"
    engines: tuple[str, ...] = ()
    prompt_tokens: tuple[int, ...] = ()
    new_tokens: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    endpoint: str = ""
    endpoint_encodings: tuple[str, ...] = ()
    serve: str = ""
    serve_port: int = 8011
    serve_name: str = ""

    @classmethod
    def of_options(
        cls, options: object, rows: Iterable[OptionRow], *, models: tuple[str, ...]
    ) -> PlanRequest:
        """Return what options ask for.

        Args:
            options: Holds the value of each row.
            rows: Each says which field here or of ``sampling`` takes its value, if one does.
            models: Specifications of the models.
        """
        values: dict[str, dict[str, Any]] = {"request": {}, "sampling": {}, "case": {}}
        for row in rows:
            if row.to:
                room, _, name = row.to.partition(".")
                values[room][name] = getattr(options, row.field)
        values["request"].update(
            models=models, sampling=Sampling(**values["sampling"]), of_passes=values["case"]
        )
        return cls(**values["request"])


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
    compiled: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether one caller calls one session of a plain file, with values on the host."""
        usual = (self.concurrency, self.sessions, self.call, self.io)
        return usual == (1, 1, "sync", "end-to-end") and not self.compiled


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
    fixing: tuple[str | None, ...] = request.fix_dims or (None,)
    compiled: tuple[str | None, ...] = request.compiled or (None,)
    for (
        batch,
        thread,
        level,
        concurrent,
        several,
        spin,
        fixed,
        call,
        io,
        ahead,
    ) in itertools.product(
        batches,
        threads,
        levels,
        callers,
        sessions,
        spinning,
        fixing,
        request.calls,
        request.io,
        compiled,
    ):
        session, knobs = base, {}
        if thread is not None:
            session = replace(session, intra_op_num_threads=thread)
            knobs["threads"] = str(thread)
        if level is not None:
            session = replace(session, graph_optimization_level=level)
            knobs[GRAPH_OPT] = level
        if concurrent is not None:
            knobs["concurrency"] = str(concurrent)
        if several is not None:
            knobs["sessions"] = str(several)
        if spin is not None:
            session = with_spinning(session, spin)
            knobs[SPIN] = spin
        if fixed is not None:
            knobs[FIX_DIMS] = fixed
        if call != "sync":
            knobs["call"] = call
        if io != "end-to-end":
            knobs["io"] = io
        if ahead is not None:
            session = with_compiling(session, ahead)
            knobs["compiled"] = ahead
        yield Combination(
            batch=batch,
            io=io,
            session=session,
            knobs=knobs,
            concurrency=concurrent or 1,
            sessions=several or 1,
            call=call,
            compiled=ahead == "on",
        )
