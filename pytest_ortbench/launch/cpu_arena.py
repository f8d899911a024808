"""Whether sessions of a runtime take memory of the CPU from an arena as they are told to."""

from __future__ import annotations

from collections.abc import Callable

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.schema.runtime_questions import ChunkTaken, TakeChunk

#: A first chunk that nothing else in a process comes near.
CHUNK_BYTES = 512 << 20

_HINT = "Leave arena_extend_strategy and arena_initial_chunk_bytes out of --ort-session-option"

#: Asks a runtime.
Ask = Callable[[TakeChunk, Runtime], ChunkTaken]


class ArenaProofs:
    """Proves once for each runtime that the two settings of its arena do something.

    Args:
        ask: Asks a fresh process of a runtime.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._unproven: dict[str, str] = {}

    def refusal(self, case: Case) -> Failure | None:
        """Return why the arena of a case proves nothing; ``None`` if it works, or none is asked.

        Args:
            case: What is to be measured.

        Raises:
            WorkerError: if the runtime can't be asked.
        """
        if not case.session.sets_arena:
            return None
        if case.provider.name != CPU:
            reason = f"the arena is that of the CPU, and the provider is {case.provider.alias}"
        else:
            label = case.runtime.label
            if label not in self._unproven:
                self._unproven[label] = self._try(case.runtime)
            reason = self._unproven[label]
        return case_failure(reason, _HINT, phase="session") if reason else None

    def _try(self, runtime: Runtime) -> str:
        """Say why no effect is proven; empty if one is.

        Growing by powers of two, an arena begins with its first chunk; growing by what is
        requested, it takes no more than that. If both are seen, both settings are in force.
        """
        rises: list[int] = []
        for strategy in ("kNextPowerOfTwo", "kSameAsRequested"):
            taken = self._ask(TakeChunk(strategy=strategy, chunk_bytes=CHUNK_BYTES), runtime)
            if taken.risen_bytes is None:
                return f"no effect of an arena can be proven here: {taken.reason}"
            rises.append(taken.risen_bytes)
        whole, exact = rises
        if whole < CHUNK_BYTES:
            return "sessions of this ONNX Runtime don't use the arena that they are given"
        if exact >= CHUNK_BYTES:
            return "this ONNX Runtime's arena grows alike by either strategy"
        return ""
