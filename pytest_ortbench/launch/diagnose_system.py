"""What the operating system refused: to start a program, or ONNX Runtime a file of the model."""

from __future__ import annotations

import errno
import os
import re

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import RAISE_OPEN_FILES, TOO_MANY_OPEN, says
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.evidence import Evidence, failure_of, made_anew

#: All that ONNX Runtime says where a call of the system fails.
_NUMBER = re.compile(r"SystemError ?: ?(\d+)\s*")


def refused_by_system(evidence: Evidence) -> Failure | None:
    """Say what the system refused where ONNX Runtime gives its number alone."""
    match = _NUMBER.fullmatch(evidence.refusal.text)
    if match is None:
        return None
    number = int(match[1])
    return failure_of(
        evidence,
        "error",
        f"ONNX Runtime can't read a file of the model. {says('The system', os.strerror(number))}",
        RAISE_OPEN_FILES if number in TOO_MANY_OPEN else "",
    )


def how_to_start(error: OSError, runtime: Runtime) -> str:
    """Return the next step where the system can't start the program of a runtime."""
    if error.errno in TOO_MANY_OPEN:
        return RAISE_OPEN_FILES
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return "End other programs of your user, and run again"
    if runtime.requirements:
        return made_anew(runtime)
    return (
        f"Install this program, or correct the command of the runtime {runtime.label!r} in "
        "pyproject.toml or ortbench.toml"
    )
