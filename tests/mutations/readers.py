"""Every command that reads a run document, called on one, with an eye on crashes and time."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.cli.application import run

#: No reader may compute longer over a document of this size. Of the processor, since a busy machine
#: makes everything slow.
MOST_S = 10.0

#: By command: the arguments, for a document beside a good one and in a folder of runs.
READERS: dict[str, Callable[[Path, Path], list[str]]] = {
    "show": lambda bad, _: ["show", str(bad)],
    "report": lambda bad, _: ["report", str(bad), f"--output={bad.parent / 'out.html'}"],
    "compare": lambda bad, good: ["compare", str(bad), str(good)],
    "trend": lambda bad, _: ["trend", str(bad.parents[1])],
    "gate": lambda bad, good: ["gate", str(bad), str(good)],
    "gate, as the contender": lambda bad, good: ["gate", str(good), str(bad)],
    "export": lambda bad, _: ["export", str(bad), "--format=md"],
    "merge": lambda bad, good: ["merge", str(bad), str(good), f"--output={bad.parent / 'm.json'}"],
    "badge": lambda bad, _: ["badge", str(bad), "net"],
    "schema": lambda bad, _: ["schema", str(bad)],
    "watch": lambda bad, _: ["watch", str(bad), "--once"],
    "report, of two": lambda bad, good: [
        "report", str(bad), str(good), f"--output={bad.parent / 'two.html'}",
    ],
    "plot": lambda bad, _: ["plot", str(bad), f"--output={bad.parent / 'plots'}"],
}  # fmt: skip
#: Those that the whole trial goes through for every document.
ALWAYS = ("show", "report", "compare", "trend", "gate")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a command did.

    Attributes:
        code: Exit code; ``None`` for one that raised or took too long.
        text: What it printed, both streams; the traceback of one that raised.
        cpu_s: How long it computed.
    """

    code: int | None
    text: str
    cpu_s: float

    @property
    def problem(self) -> str:
        """What is wrong; empty for a command that worked, or said in a line why it did not."""
        if self.code is None:
            return self.text
        if "Traceback (most recent call last)" in self.text:
            return self.text
        if self.code == 2 and not self.text.startswith(("ortbench: ", "note: ")):
            return f"no message of ours: {self.text}"
        return ""


def call(command: str, bad: Path, good: Path) -> Ended:
    """Run one command of :data:`READERS` in this process."""
    out = io.StringIO()
    began = time.process_time()
    code: int | None = None
    try:
        with _within(MOST_S), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run(READERS[command](bad, good))
        text = out.getvalue()
    except Exception:  # noqa: BLE001 - whatever a reader raises is what is looked for
        text = traceback.format_exc()
    return Ended(code=code, text=text, cpu_s=time.process_time() - began)


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, where the system can."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGPROF"):
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise TimeoutError(f"still computing after {seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def laid_out(folder: Path, bad: bytes, good: bytes) -> tuple[Path, Path]:
    """Write a changed and a good document into folders of their own, as runs lie on disk."""
    paths = folder / "results" / "bad" / "run.json", folder / "results" / "good" / "run.json"
    for path, data in zip(paths, (bad, good), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return paths


def is_json(data: bytes) -> bool:
    """Whether something is JSON at all."""
    try:
        json.loads(data)
    except ValueError:
        return False
    return True
