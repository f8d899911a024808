"""Sessions that can't run at a time in one process, since they share what they record on a device.

*Seen* with onnxruntime-webgpu 1.27: runs on one session wait for each other, and are right. Runs on
two sessions record into the same commands: most values were wrong, without an error, and some
processes ended with SIGSEGV. So it is where one session's outputs are brought from the device while
another thread runs it. By its sources, the plug-in of that provider records a session's commands
apart.
"""

from __future__ import annotations

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import WEBGPU
from pytest_ortbench.worker.session import is_compiled_in


def require_safe_callers(case: Case) -> None:
    """Refuse callers whose runs would mix on the device.

    Raises:
        WorkerError: ``unsupported``, with the way that is safe.
    """
    provider = case.provider
    if provider.name != WEBGPU or case.callers == 1 or not is_compiled_in(provider):
        return
    if case.sessions > 1:
        raise _unsupported(
            f"{case.sessions} sessions of {provider.name} in one process record into the same "
            "commands: several at a time compute wrong values",
            "Use --ort-processes for several sessions at a time",
        )
    if case.io == "device":
        raise _unsupported(
            f"the outputs of {provider.name} can't be waited for on its device while another "
            "caller runs the session",
            "Use --ort-io=end-to-end for several callers, or --ort-processes",
        )


def _unsupported(message: str, hint: str) -> WorkerError:
    return WorkerError(Failure(kind="unsupported", phase="session", message=message, hint=hint))
