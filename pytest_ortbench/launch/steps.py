"""Next steps after a measured process ended by itself, or had too little memory."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.provider_kinds import CPU

ANOTHER_RUNTIME = "try another version of ONNX Runtime, e.g. --ort-runtimes=onnxruntime==1.20.1"

_LARGER = "Use a machine or a device with more memory"
#: Phases in which inputs are not there yet: what takes memory is the model.
_BEFORE_INPUTS = ("start", "import", "session")


def less_memory(case: Case | None, phase: str) -> str:
    """Return the step where memory ran out: what of a case can be smaller.

    Args:
        case: The case, if it was about one.
        phase: What the process was doing.
    """
    if case is None:
        return _LARGER
    if phase in _BEFORE_INPUTS:
        smaller = "int8-dynamic" if case.provider.name == CPU else "fp16"
        if case.variant.precision != "native":
            return _LARGER
        return f"{_LARGER}, or try a smaller precision, e.g. --ort-precisions={smaller}"
    sizes = ["--ort-batch-sizes=1"] if case.batch > 1 else []
    sizes += ["smaller sizes in --ort-dims"] if case.dims else []
    return f"Measure smaller inputs, with {' and '.join(sizes)}" if sizes else _LARGER


def raised_limit(phase: str) -> str:
    """Return the step where a process needed more memory than the user gives it."""
    if phase in _BEFORE_INPUTS:
        return "Raise --ort-memory-limit"
    return (
        "Raise --ort-memory-limit, or measure smaller inputs with --ort-batch-sizes or --ort-dims"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSteps:
    """What helps where a process ends by itself.

    Attributes:
        another: How to do without the native code that computes, as a step.
        own: The user's own code in the process: paths of custom operators; empty for none.
    """

    another: str = ANOTHER_RUNTIME
    own: str = ""

    def usual(self, signal: str) -> str:
        """Return the step where a signal tells it; empty for others."""
        if signal == "SIGKILL":
            return (
                "Another program or the kernel killed the process. Run 'dmesg': if it was the "
                "kernel, use a machine with more memory"
            )
        if signal == "SIGILL":
            step = f"build {self.own} again for this CPU" if self.own else self.another
            return f"This CPU lacks an instruction that the process used. To do without it, {step}"
        if signal == "SIGSEGV":
            if self.own:
                return f"The fault is in native code. Look for it first in {self.own}"
            return f"The fault is in native code. To do without it, {self.another}"
        return ""

    def again(self) -> str:
        """Return the step where nothing tells why."""
        if self.own:
            return f"Look for the cause in {self.own}, which this process loads"
        return f"Measure the case again. If this happens again, {self.another}"


def own_command(runtime: Runtime) -> bool:
    """Return whether the user says how the Python of a runtime is started."""
    return bool(runtime.command) and not runtime.requirements


def by_hand(runtime: Runtime) -> str:
    """Return the step where the command of a runtime ends and prints nothing."""
    return f"To see why, run: {shlex.join((*runtime.command, '--version'))}"
