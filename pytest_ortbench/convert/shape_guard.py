"""Shape inference of onnx, where a graph on which it crashes costs the types and not the worker.

It is native code that a model can end (*seen*: a segmentation fault on a LabelEncoder whose input
has no known type, as behind an operator of another domain). The tools of a conversion call it
whether they need its result or not, so it is tried in a child process first.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

#: A child process that takes no CPU time for this long waits for something that does not come.
STANDS_STILL_S = 10.0
#: How often it is looked at.
_LOOK_S = 0.005
#: What a reader should know where it crashed.
CRASHED = "onnx's shape inference crashes on this graph: types are not known, casts may be missing"


@contextmanager
def guarded() -> Iterator[list[str]]:
    """Let shape inference leave a model as it is where it would end this process.

    Yields:
        Notes, of which there are some once that happened.
    """
    import onnx
    from onnx import shape_inference

    notes: list[str] = []
    in_memory, by_path = shape_inference.infer_shapes, shape_inference.infer_shapes_path

    def infer_shapes(model: onnx.ModelProto | bytes, *args: Any, **kwargs: Any) -> Any:
        if not _crashes(lambda: in_memory(model, *args, **kwargs)):
            return in_memory(model, *args, **kwargs)
        notes[:] = [CRASHED]
        return onnx.load_model_from_string(model) if isinstance(model, bytes) else model

    def infer_shapes_path(
        model_path: Any, output_path: Any = "", *args: Any, **kwargs: Any
    ) -> None:
        if not _crashes(lambda: by_path(model_path, output_path, *args, **kwargs)):
            by_path(model_path, output_path, *args, **kwargs)
            return
        notes[:] = [CRASHED]
        if output_path and str(output_path) != str(model_path):
            shutil.copyfile(model_path, output_path)

    shape_inference.infer_shapes = infer_shapes
    shape_inference.infer_shapes_path = infer_shapes_path
    try:
        yield notes
    finally:
        shape_inference.infer_shapes = in_memory
        shape_inference.infer_shapes_path = by_path


def _crashes(call: Callable[[], object]) -> bool:
    """Whether a call ends the process that it runs in.

    False where that can't be told: where no process can be copied, and where the copy stands still,
    since it waits for a lock that a thread of this process held when it was copied.
    """
    if sys.platform != "linux":
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads of the runtime are idle, and not needed there
        child = os.fork()
    if child == 0:
        status = 1
        try:
            _be_quiet()
            call()
            status = 0
        finally:
            os._exit(status)
    return os.WIFSIGNALED(_end_of(child))


def _end_of(child: int) -> int:
    """Wait until a child process ends, end one that stands still, and return its wait status."""
    worked, moved_at = -1, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        now = time.monotonic()
        if (ticks := _ticks(child)) != worked:
            worked, moved_at = ticks, now
        elif now - moved_at > STANDS_STILL_S:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 0
        time.sleep(_LOOK_S)


def _ticks(child: int) -> int:
    """Return the CPU time of a child process, in the ticks of Linux."""
    fields = Path(f"/proc/{child}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[11]) + int(fields[12])


def _be_quiet() -> None:
    """Leave no core, and nothing on the standard streams."""
    import faulthandler
    import resource

    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
