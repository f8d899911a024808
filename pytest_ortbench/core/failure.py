"""Why a case gave no number: the kind of it, what the worker was doing, and the next step.

Every worker loads this, and no pass for it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from pytest_ortbench.core.placing import Place, placed
from pytest_ortbench.passes import registry

#: Every way in which a case can fail to give a number.
FAILURE_KINDS: dict[str, str] = {
    "unsupported": "the model, operator set, precision or shape is not supported there",
    "unavailable": "the provider, device or library is not available here",
    "fallback": "the provider exists, but ran no computing node or left the requested device",
    "out_of_memory": "memory ran out",
    "timeout": "the case took longer than --ort-timeout",
    "crash": "the measured process died",
    "error": "anything else",
}

#: The phase in which a file turns out to be another one than was planned; nothing that was
#: measured before is kept.
CHANGED_FILE = "digest"

_STANDARD_PHASES: dict[str, str] = {
    "start": "starting the interpreter",
    "files": "copying files to the runtime",
    CHANGED_FILE: "checking its files",
    "import": "importing ONNX Runtime or another engine",
    "export": "exporting the model",
    "convert": "converting the model",
    "compile": "compiling the model",
    "plug-ins": "loading plug-in providers",
    "inputs": "preparing the case",
    "session": "creating the session",
    "first": "running the first inference",
    "warm-up": "warming up",
    "measure": "measuring",
    "memory": "reading memory",
    "profile": "profiling placement",
    "accuracy": "comparing outputs",
    "reference": "computing the reference",
    "close": "shutting down",
}


@functools.cache
def phases() -> dict[str, str]:
    """Return what a worker may be doing, as it stands after "while", by the names of the phases."""
    of_passes = [entry.phase for entry in registry.PASSES if entry.phase is not None]
    return dict(
        placed(
            _STANDARD_PHASES.items(),
            [
                (Place(after="reference", rank=phase.rank), (phase.name, phase.doing))
                for phase in of_passes
            ],
            lambda phase: phase[0],
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a case gave no number.

    Attributes:
        kind: A key of :data:`FAILURE_KINDS`.
        phase: A key of :func:`phases`.
        message: One line in plain words, with the native message where there is one.
        hint: The next step, empty where none is known.
        exit_code: Exit code of the worker, if it exited.
        signal: Name of the signal that ended it (``SIGSEGV``), empty if none did.
        log_tail: Last lines of what native code printed.
        tells_phase: Whether the message itself says what the worker was doing.
        tells_signal: Whether the message itself names the signal.
    """

    kind: str
    phase: str
    message: str
    hint: str = ""
    exit_code: int | None = None
    signal: str = ""
    log_tail: str = ""
    tells_phase: bool = False
    tells_signal: bool = False

    @property
    def doing(self) -> str:
        """What the worker was doing; empty where the message says so itself."""
        return "" if self.tells_phase else phases().get(self.phase, self.phase)

    @property
    def told(self) -> str:
        """The message, followed by the next step if there is one."""
        return f"{self.message}. {self.hint}" if self.hint else self.message
