"""Runs the console blocks of the documentation that are marked, and holds them against the page.

A comment before a block of code says what becomes of it; the blocks of a page run in their order,
in one folder:

``<!-- ready: model -->``
    Makes files that a reader has of their own (:data:`READY`).
``<!-- file: labels.py -->``
    Writes the block into a file.
``<!-- run -->``
    Runs the commands behind ``$``; what follows them is their output. ``exit=1`` says how they end
    (0 where nothing is said), ``from="…"`` and ``to="…"`` cut what is shown: from the first line
    that holds the text, to the next one that holds the other; ``drop="…"`` leaves out what stands
    from a line that begins with the text to the next empty one. ``compare=text`` holds every line
    against the page, with its numbers masked; else only what a run decides by itself: rows,
    outcomes, verdicts of gates and the counts of pytest's last line.

``python -m tests.site_blocks [PAGE…]`` writes what the commands print into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.models.builders import build
from pytest_ortbench.store.folder import write_document
from tests.analysis.test_history import run_of

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

#: Width of what is printed, which fits into a page.
COLUMNS = 86
_CUT = "…"
#: Plugins of the environment of the tests are none of a reader's.
_ALONE = "-p no:benchmark -p no:xdist -p no:cov -p no:hypothesispytest"
_COMMENT = re.compile(r"^<!-- (?P<kind>ready|file|run)\b:? *(?P<text>.*?) *-->$")
_FENCE = re.compile(r"^```(?P<language>\w*)$")
_PROMPT = "$ "


def _model(folder: Path) -> dict[str, str]:
    shutil.copy(build("lstm_tagger", folder / ".built"), folder / "model.onnx")
    shutil.rmtree(folder / ".built")
    return {}


def _git(folder: Path) -> dict[str, str]:
    name = {"GIT_AUTHOR_NAME": "you", "GIT_COMMITTER_NAME": "you"}
    address = {"GIT_AUTHOR_EMAIL": "you@example.org", "GIT_COMMITTER_EMAIL": "you@example.org"}
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    return {**name, **address}


def _tools(folder: Path) -> dict[str, str]:
    """Install what other tools' pages use, with this checkout as the package that they find."""
    kept = folder.parent / f"{folder.name}-tools"
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", kept / "wheels", ROOT], check=True)
    subprocess.run([sys.executable, "-m", "venv", kept / "venv"], check=True)
    names = ["tox", "nox", "pre-commit"]
    subprocess.run([kept / "venv/bin/python", "-m", "pip", "install", "-q", *names], check=True)
    return {
        "PIP_FIND_LINKS": str(kept / "wheels"),
        "PIP_QUIET": "3",
        "PYTHONPATH": "",
        "PATH": f"{kept / 'venv/bin'}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(kept / "hooks"),
    }


def _plugins(folder: Path) -> dict[str, str]:
    return {"PYTEST_ADDOPTS": ""}


def _machines(folder: Path) -> dict[str, str]:
    for name in ("big.json", "small.json"):
        shutil.copy(DOCS / "start" / name, folder)
    return {}


def _history(folder: Path) -> dict[str, str]:
    for index in range(10):
        run = run_of(index, 3_000_000 if index < 5 else 3_600_000)
        target = folder / "results" / run.run_id
        target.mkdir(parents=True)
        write_document(run, target / "run.json")
    return {}


def _reruns(folder: Path) -> dict[str, str]:
    kept = folder.parent / f"{folder.name}-reruns"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", kept]
    subprocess.run([*pip, "pytest-rerunfailures"], check=True)
    paths = [str(kept), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {"PYTHONPATH": os.pathsep.join(paths)}


#: What a reader has already: makes it in a folder, and returns variables of the environment.
READY: dict[str, Callable[[Path], dict[str, str]]] = {
    "model": _model,
    "git": _git,
    "machines": _machines,
    "history": _history,
    "plugins": _plugins,
    "reruns": _reruns,
    "tools": _tools,
}


@dataclass(frozen=True)
class Step:
    """A block that is written or run.

    Attributes:
        kind: ``ready``, ``file`` or ``run``.
        text: Names of what is made ready, the path of a file, or the settings of a run.
        first: Number of the first line inside the fence, counted from 0.
        last: Number of the line that closes it.
        block: What stands between.
    """

    kind: str
    text: str
    first: int = 0
    last: int = 0
    block: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a run."""
        return dict(word.split("=", 1) for word in shlex.split(self.text))


@dataclass(frozen=True)
class Shown:
    """A command of a block and what it printed."""

    command: str
    output: str
    status: int = 0


def steps_of(text: str) -> list[Step]:
    """Return the marked blocks of a page in their order."""
    steps: list[Step] = []
    lines = text.splitlines()
    for index, line in enumerate(lines):
        comment = _COMMENT.match(line)
        if comment is None:
            continue
        step = Step(comment["kind"], comment["text"])
        if step.kind != "ready":
            if not _FENCE.match(lines[index + 1]):
                raise ValueError(f"no block of code behind {line!r}")
            first = index + 2
            last = next(at for at in range(first, len(lines)) if lines[at] == "```")
            step = replace(step, first=first, last=last, block="\n".join(lines[first:last]) + "\n")
        steps.append(step)
    return steps


def commands_of(block: str) -> list[Shown]:
    """Return the commands of a console block with what the page shows of their output."""
    shown: list[Shown] = []
    goes_on = False
    for line in block.splitlines(keepends=True):
        if goes_on or line.startswith(_PROMPT):
            command = line.removesuffix("\n")
            if goes_on:
                shown[-1] = replace(shown[-1], command=f"{shown[-1].command}\n{command}")
            else:
                shown.append(Shown(command.removeprefix(_PROMPT), ""))
            goes_on = command.endswith("\\")
        else:
            shown[-1] = replace(shown[-1], output=shown[-1].output + line)
    return shown


def run_page(text: str, folder: Path) -> list[tuple[Step, list[Shown]]]:
    """Carry out the steps of a page in a folder; return each run with what it printed."""
    ran = []
    more: dict[str, str] = {}
    for step in steps_of(text):
        if step.kind == "ready":
            for name in step.text.split():
                more.update(READY[name](folder))
        elif step.kind == "file":
            path = folder / step.text
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.block, encoding="utf-8")
        else:
            shown = [_run(entry.command, folder, more) for entry in commands_of(step.block)]
            ran.append((step, [cut(entry, step.settings) for entry in shown]))
    return ran


def _run(command: str, folder: Path, more: dict[str, str]) -> Shown:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTEST_ADDOPTS": _ALONE,
        **more,
    }
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITLAB_CI"):
        environment.pop(name, None)
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=900,
    )
    text = ended.stdout.replace(str(folder), "/project")
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "host", text)
    text = re.sub(r"(\d{8}T\d{6}Z)-\w[\w-]*-([0-9a-f]{4})\b", r"\1-host-\2", text)
    return Shown(
        command, "\n".join(line.rstrip() for line in text.splitlines()) + "\n", ended.returncode
    )


def cut(shown: Shown, settings: dict[str, str]) -> Shown:
    """Return the part of an output that a page shows."""
    lines = shown.output.splitlines()
    first, last = 0, len(lines)
    if "from" in settings:
        first = next((at for at, line in enumerate(lines) if settings["from"] in line), 0)
    if "to" in settings:
        last = next(
            (at for at in range(first + 1, len(lines)) if settings["to"] in lines[at]), len(lines)
        )
    part = list(_without(lines[first:last], settings.get("drop")))
    while part and not part[-1]:
        part.pop()
    part = [*([_CUT] if first else []), *part, *([_CUT] if last < len(lines) else [])]
    return replace(shown, output="".join(f"{line}\n" for line in part))


def _without(lines: Sequence[str], start: str | None) -> Iterator[str]:
    dropping = False
    for line in lines:
        if start and line.startswith(start):
            dropping = True
            yield _CUT
        dropping = dropping and bool(line)
        if not dropping:
            yield line


_ROW = re.compile(r"^ {2,}((?:[\w.:@+-]+/)*b\d+(?:/[\w.:@+-]+)*)(?= |$)")
_GATE = re.compile(r"^gate (\S+)(?: against (\S+))?: ([a-z ]+?)(?= {2}|$)")
_OUTCOME = re.compile(r"^(?:FAILED|ERROR|SKIPPED|XFAIL)\b.*?([\w./-]+::[\w\[\]./:+-]+|$)")
_COUNTS = re.compile(
    r"\b\d+ (?:passed|failed|skipped|error|errors|xfailed|deselected|rerun|warnings?)\b"
)
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?\d[\d.,]*(?:e[-+]?\d+)?(?: ?(?:[nµm]?s|min|[kMG]?B|[kM]?iB|GiB|%|dB|k|M)\b)?"
)


def decided(output: str) -> list[str]:
    """Return what a run decides by itself, whatever the machine does: rows, outcomes, counts."""
    facts = []
    for line in output.splitlines():
        if row := _ROW.match(line):
            facts.append(row[1])
        elif gate := _GATE.match(line):
            facts.append(f"gate {gate[1]} {gate[2]} {gate[3]}")
        elif outcome := _OUTCOME.match(line):
            facts.append(f"{line.split()[0]} {outcome[1]}")
        elif counts := _COUNTS.findall(line):
            facts.append(", ".join(count for count in counts if "warning" not in count))
    return facts


def masked(output: str) -> list[str]:
    """Return the lines of an output with their numbers masked."""
    return [
        re.sub(r"\s+", " ", _NUMBER.sub("N", line)).strip() for line in output.splitlines() if line
    ]


def differences(step: Step, ran: Sequence[Shown]) -> Iterator[str]:
    """Yield where a run is not what the page shows."""
    expected = commands_of(step.block)
    reading = masked if step.settings.get("compare") == "text" else decided
    status = int(step.settings.get("exit", 0))
    for wanted, got in zip(expected, ran, strict=True):
        if got.status != status:
            yield f"$ {got.command}\nended with {got.status}, not {status}:\n{got.output}"
        elif reading(wanted.output) != reading(got.output):
            yield (
                f"$ {got.command}\nshows {reading(wanted.output)},\nprinted "
                f"{reading(got.output)}:\n{got.output}"
            )


def written(text: str, ran: Sequence[tuple[Step, Sequence[Shown]]]) -> str:
    """Return a page with what its commands printed."""
    lines = text.splitlines()
    for step, shown in reversed(ran):
        block = "".join(f"{_PROMPT}{entry.command}\n{entry.output}" for entry in shown)
        lines[step.first : step.last] = block.splitlines()
    return "\n".join(lines) + "\n"


def marked_pages() -> list[str]:
    """Return the pages that have blocks to run, by their paths in docs/."""
    return [
        path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*.md"))
        if any(step.kind == "run" for step in steps_of(path.read_text(encoding="utf-8")))
    ]


def main(arguments: Sequence[str]) -> int:
    """Write what the commands of pages print into them; return 1 where one ended otherwise."""
    wrong = 0
    for name in arguments or marked_pages():
        path = DOCS / name
        text = path.read_text(encoding="utf-8")
        parent = Path(tempfile.mkdtemp(prefix="ortbench-page-"))
        folder = parent / "project"
        folder.mkdir()
        try:
            ran = run_page(text, folder)
        finally:
            shutil.rmtree(parent, ignore_errors=True)
        for step, shown in ran:
            for entry in shown:
                if entry.status != int(step.settings.get("exit", 0)):
                    wrong = 1
                    print(f"{name}: $ {entry.command} ended with {entry.status}\n{entry.output}")
        path.write_text(written(text, ran), encoding="utf-8")
        print(f"{name}: {sum(len(shown) for _, shown in ran)} commands", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
