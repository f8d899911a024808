"""Real runs of pytest and of the console tool, which tests signal and kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

#: Short enough for a test; the numbers that come out are real but not good.
QUICK = ("--ort-time=0.3", "--ort-workers=1", "-p", "no:cacheprovider")
#: The same with a document only: no canary, no plots.
BARE = ("--ort-no-results", "--ort-json=results/r/run.json", *QUICK)
#: A test that waits longer than that for what must come has failed.
_PATIENCE_S = 600.0
_STEP_S = 0.02


@dataclass
class Started:
    """A process that a test started.

    Attributes:
        process: It.
        temporary: Where its temporary files are: nobody else's.
        folder: Where it runs.
    """

    process: subprocess.Popen[str]
    temporary: Path
    folder: Path

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds, while the process lives."""
        deadline = time.monotonic() + _PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, "what was waited for did not come"
            time.sleep(_STEP_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, and to no other."""
        self.process.send_signal(number)

    def end(self, patience_s: float = _PATIENCE_S) -> str:
        """Wait for its end and return what it printed."""
        return self.process.communicate(timeout=patience_s)[0]

    def left(self) -> list[str]:
        """Return what lies where its temporary files are, but for what ONNX Runtime keeps there."""
        return sorted(path.name for path in self.temporary.iterdir() if path.name != ".ses")

    def results(self) -> list[dict[str, Any]]:
        """Return the cases of its documents and journals, as far as they are on the disk."""
        return stored_results(self.folder)


def _take_default_signals() -> None:
    """Let signals end this process, though whoever started the tests may have ignored some."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(
    folder: Path, arguments: Sequence[str], *, module: str = "pytest", **popen: Any
) -> Iterator[Started]:
    """Start pytest, or the console tool, and end it with the test.

    Args:
        folder: Where it runs.
        arguments: What follows the module's name.
        module: What is run.
        popen: More for :class:`subprocess.Popen`.
    """
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    command = [sys.executable, "-m", module, *arguments]
    channels = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **popen}
    if sys.platform != "win32":
        channels.setdefault("preexec_fn", _take_default_signals)
    environment = {**os.environ, "TMPDIR": str(temporary), "COLUMNS": "120"}
    process = subprocess.Popen(command, cwd=folder, env=environment, text=True, **channels)
    try:
        yield Started(process, temporary, folder)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stdin):
            if stream is not None:
                stream.close()


def stored_results(folder: Path) -> list[dict[str, Any]]:
    """Return the stored cases below a results folder; a torn last line is none."""
    cases: list[dict[str, Any]] = []
    for run in sorted(folder.glob("results/*")):
        document, journal = run / "run.json", run / "journal.jsonl"
        if document.is_file():
            cases += json.loads(document.read_text())["cases"]
        elif journal.is_file():
            lines = journal.read_bytes().splitlines(keepends=True)
            entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
            cases += [entry for entry in entries if "cases" not in entry]
    return cases


def write_model(path: Path, *, size: int = 8) -> Path:
    """Write a MatMul on [N, size]."""
    weight = np.eye(size, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")],
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", size])],
        [numpy_helper.from_array(weight, "w")],
    )
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), path)
    return path
