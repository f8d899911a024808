"""The program that runs on a machine of a fleet: it looks, unpacks, installs, measures and tells.

It travels as text and uses the standard library only, so that any Python 3.10 runs it. Each call
does one thing in the folder that it is given, and prints one line of JSON: ``{"ok": true, …}``, or
``{"ok": false, "reason": …}`` with exit status 1.

    python host.py COMMAND FOLDER TAG [SECONDS]
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_LEAST_PYTHON = (3, 10)
#: A larger file lies once on the disk, under its digest and in the project.
_LINKED_FROM = 1 << 20
_CHUNK = 1 << 20
#: Lines of an installer's output, and of pytest's, that go into a reason.
_LINES = 12
_LAST_LINES = 4
#: A run that has not begun by then never will.
_START_S = 120.0
_POLL_S = 0.2
#: Makes a program of this module.
_ENDING = "\n\nsys.exit(main(sys.argv[1:]))\n"
_KILL_S = 10.0
#: All that is made in the folder.
_KEPT = ("runs", "blobs", "environments", "cache", "state", "data", "tmp", "host.py")


class HostError(Exception):
    """Something that can't be done here; its text is the reason."""


class AgreedFolder:
    """The folder on this machine, and a run in it: each host that shares the folder has its own."""

    def __init__(self, folder: str, tag: str) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.run = self.folder / "runs" / tag
        self.blobs = self.folder / "blobs"
        self.results = self.run / "results"
        self.installer = self.run / "installer.json"
        self.prepared = self.run / "prepared"
        self.process = self.run / "process.json"
        self.stopped = self.run / "stopped"
        self.exit = self.run / "exit.json"
        self.output = self.run / "output.txt"

    def parcel(self) -> dict[str, Any]:
        """Read what was sent: files, requirements, arguments."""
        content: dict[str, Any] = json.loads((self.run / "parcel.json").read_text("utf-8"))
        return content

    def environment(self) -> dict[str, str]:
        """Return the variables of all that is started: nothing is kept outside of the folder."""
        inside = {
            "TMPDIR": "tmp",
            **{f"XDG_{part.upper()}_HOME": part for part in ("cache", "state", "data")},
            "UV_CACHE_DIR": "cache/uv",
            "PIP_CACHE_DIR": "cache/pip",
            "PYTHONPYCACHEPREFIX": "cache/bytecode",
            "MPLCONFIGDIR": "cache/matplotlib",
        }
        paths = {name: str(self.folder / part) for name, part in inside.items()}
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        }
        return {**kept, **paths, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def look_around(place: AgreedFolder, source: str) -> dict[str, Any]:
    """Make the folder, keep this program there, and tell what the machine has."""
    if sys.version_info < _LEAST_PYTHON:
        version, least = (".".join(map(str, v[:2])) for v in (sys.version_info, _LEAST_PYTHON))
        raise HostError(f"{sys.executable} is Python {version}; {least} or newer is needed")
    for folder in (place.run, place.blobs, place.folder / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    place.folder.chmod(0o700)
    part = place.run / "host.py"  # whole at once: another host's call may read it
    part.write_text(source + _ENDING, "utf-8")
    part.replace(place.folder / "host.py")
    return {
        "folder": str(place.folder),
        "free_bytes": shutil.disk_usage(place.folder).free,
        "clock": time.time(),
    }


def missing_files(place: AgreedFolder) -> dict[str, Any]:
    """Tell which files have to be sent: those that are not here, or not as they were."""
    parcel = place.parcel()
    wanted = {entry["digest"]: entry for entry in (*parcel["files"], *parcel["wheel_files"])}
    absent = {digest for digest in wanted if digest_on_disk(place.blobs / digest) != digest}
    large = sorted(digest for digest in absent if wanted[digest]["large"])
    size = sum(wanted[digest]["size"] for digest in absent)
    free = shutil.disk_usage(place.folder).free
    needed = size + parcel["room"]
    if free < needed:
        raise HostError(
            f"{free / 1e6:.0f} MB are free in {place.folder}; the files and the environment need "
            f"{needed / 1e6:.0f} MB"
        )
    return {"pack": len(large) < len(absent), "large": large}


def prepare_project(place: AgreedFolder) -> dict[str, Any]:
    """Lay out the project and make the environment, unless they are there or measure still."""
    parcel = place.parcel()
    if _alive(place.process):
        return {"python": str(environment_folder(place, parcel) / "bin" / "python")}
    for path in (place.process, place.stopped, place.exit):
        path.unlink(missing_ok=True)
    pack = place.run / "pack.tar"
    if pack.exists():
        unpack(pack, place.blobs)
        pack.unlink()
    lay_out_project(place, parcel["files"])
    python = _environment(place, parcel)
    place.prepared.write_text("")
    return {"python": str(python)}


def run_suite(place: AgreedFolder) -> dict[str, Any]:
    """Run pytest to its end; one that runs already is waited for."""
    if _alive(place.process):
        while _alive(place.process):
            time.sleep(_POLL_S)
        return run_status(place, 0.0)
    parcel = place.parcel()
    resumed = ["--ort-resume"] if stored_file(place, "journal.jsonl") else []
    python = str(_environment(place, parcel))
    return {"code": run_pytest(place, python, [*resumed, *parcel["arguments"]])}


def run_pytest(
    place: AgreedFolder,
    python: str,
    arguments: list[str],
    variables: dict[str, str] | None = None,
    kept_open: tuple[int, ...] = (),
) -> int:
    """Run pytest in the project to its end, in a session of its own; return its exit status."""
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", f"--ort-results={place.results}"]
    place.exit.unlink(missing_ok=True)
    with place.output.open("wb") as output:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=place.run / "project",
            env={**place.environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=kept_open,
        )
    _write(place.process, {**_record_of(process.pid), "waits": _record_of(os.getpid())})
    if place.stopped.exists():
        _signal(process.pid, signal.SIGTERM)
    code = process.wait()
    _write(place.exit, {"code": code})
    return code


def run_status(place: AgreedFolder, wait_s: float) -> dict[str, Any]:
    """Tell how far the run is, once it has ended or the time to wait is over."""
    ends = time.monotonic() + wait_s
    while _state(place) == "running" and time.monotonic() < ends:
        time.sleep(_POLL_S)
    journal = stored_file(place, "journal.jsonl")
    cases, expected = _progress(journal)
    return {
        "state": _state(place),
        "journal": str(journal or ""),
        "cases": cases,
        "expected": expected,
        "output": last_lines(place.output, 1),
    }


def last_answer(place: AgreedFolder) -> dict[str, Any]:
    """Tell where the document is and how the run ended."""
    document = stored_file(place, "run.json")
    journal = stored_file(place, "journal.jsonl")
    if document and journal and journal.stat().st_mtime > document.stat().st_mtime:
        document = None  # that of a run before
    lines = last_lines(place.output, _LAST_LINES)
    code = _read(place.exit).get("code")
    return {
        "document": str(document or ""),
        "journal": str(journal or ""),
        "code": code,
        "output": "" if document else lines,
    }


def stop(place: AgreedFolder) -> dict[str, Any]:
    """End the run with all that it started, at its beginning if need be; what is stored stays."""
    with suppress(FileNotFoundError):  # where no run was sent to
        place.stopped.write_text("")
    began = _working(place)
    for pid in began:
        _signal(pid, signal.SIGTERM)
    ends = time.monotonic() + _KILL_S
    while _working(place) and time.monotonic() < ends:
        time.sleep(_POLL_S)
    for pid in _working(place):
        _signal(pid, signal.SIGKILL)
    return {"stopped": bool(began)}


def clean(place: AgreedFolder) -> dict[str, Any]:
    """Remove what is kept here from run to run; what is not ours stays, with the folder."""
    if not place.folder.is_dir():
        return {"left": []}
    for path in sorted(place.folder.glob("runs/*")):
        run = AgreedFolder(str(place.folder), path.name)
        if _working(run):
            raise HostError(f"{path.name} still measures there")
        node = _read(run.process).get("node", platform.node())
        if node != platform.node() and not run.exit.exists():
            raise HostError(f"{path.name} began on {node} in the same folder, and has not ended")
    for name in _KEPT:
        path = place.folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    left = sorted(path.name for path in place.folder.iterdir())
    if not left:
        place.folder.rmdir()
    return {"left": left}


def _state(place: AgreedFolder) -> str:
    waits = _read(place.process).get("waits")
    # Whoever waits for pytest writes how it ended a moment after it did.
    runs = _alive(place.process) or (isinstance(waits, dict) and _process_of(waits))
    if place.exit.exists() or runs:
        return "ended" if place.exit.exists() else "running"
    try:
        prepared = place.prepared.stat().st_mtime
    except OSError:
        return "lost"
    started = place.process.exists()
    return "lost" if started or time.time() - prepared > _START_S else "running"


def _record_of(pid: int) -> dict[str, Any]:
    """Return what tells a process from others: on another machine, or later with its number."""
    return {"pid": pid, "start": _start_of(pid), "node": platform.node()}


def _read(path: Path) -> dict[str, Any]:
    """Return a record that was written here, empty if there is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _alive(path: Path) -> int:
    """Return the process that a file names, 0 if it is gone or runs on another machine."""
    return _process_of(_read(path))


def _process_of(record: dict[str, Any]) -> int:
    try:
        pid, start = int(record["pid"]), record["start"]
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError):
        return 0
    is_here = record.get("node", platform.node()) == platform.node()
    return pid if is_here and _start_of(pid) == start else 0


def _working(place: AgreedFolder) -> list[int]:
    """Return the processes of the run: that which prepares it, and pytest."""
    return [pid for path in (place.installer, place.process) if (pid := _alive(path))]


def _start_of(pid: int) -> str:
    """Return when a process started, so that another with its number is told apart."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        shown = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        return shown.stdout.strip()
    # A process that ended and was not waited for is none.
    return "" if fields[0] == "Z" else fields[19]


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        return


def stored_file(place: AgreedFolder, name: str) -> Path | None:
    """Return the newest file of a name below the results."""
    paths = sorted(place.results.glob(f"*/{name}"), key=lambda path: path.stat().st_mtime)
    return paths[-1] if paths else None


def _progress(journal: Path | None) -> tuple[int, int]:
    """Return the finished cases of a journal, and those of its plan."""
    if journal is None:
        return 0, 0
    try:
        with journal.open("rb") as stream:
            head = json.loads(stream.readline())
            lines = sum(1 for line in stream if line[-1:] == b"\n")
        return lines, int(head.get("expected", 0))
    except (OSError, ValueError, AttributeError):
        return 0, 0


def unpack(pack: Path, blobs: Path) -> None:
    """Keep the files of an archive under their digests, each whole or not at all."""
    with tarfile.open(pack) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is None or not member.name.isalnum():
                raise HostError(f"{pack} holds {member.name!r}, which is no file by its digest")
            part = blobs / f"{member.name}.{os.getpid()}"
            part.write_bytes(content.read())
            part.replace(blobs / member.name)


def lay_out_project(place: AgreedFolder, files: list[dict[str, Any]]) -> None:
    """Make the project of a run of files that are kept by digest."""
    project = place.run / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    for entry in files:
        blob, path = place.blobs / entry["digest"], project / entry["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry["size"] >= _LINKED_FROM:
            os.link(blob, path)
        else:
            shutil.copyfile(blob, path)
            path.chmod(0o700 if entry["executable"] else 0o600)


def environment_folder(place: AgreedFolder, parcel: dict[str, Any]) -> Path:
    """Return where the environment lies: another for other requirements, wheels or Pythons."""
    facts = [parcel["requirements"], parcel["wheels"], sys.version, sys.executable]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return place.folder / "environments" / key


def _environment(place: AgreedFolder, parcel: dict[str, Any]) -> Path:
    """Return the interpreter of the environment; make it unless it was made to the end."""
    folder = environment_folder(place, parcel)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "complete").exists():
            _make_environment(place, parcel, folder)
    return folder / "bin" / "python"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until nobody else makes what a file stands for."""
    import fcntl  # not on Windows, where no environment is made

    with path.open("wb") as stream:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _make_environment(place: AgreedFolder, parcel: dict[str, Any], folder: Path) -> None:
    python = folder / "bin" / "python"
    shutil.rmtree(folder, ignore_errors=True)
    wheels = folder.with_name(f"{folder.name}-wheels")
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    for name, digest in parcel["wheels"].items():
        shutil.copyfile(place.blobs / digest, wheels / name)
    source = ["--find-links", str(wheels), *(["--no-index"] if parcel["offline"] else [])]
    requirements = [text.replace("{wheels}", str(wheels)) for text in parcel["requirements"]]
    uv = shutil.which("uv")
    if uv:
        _call(place, [uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    else:
        _call(place, [sys.executable, "-m", "venv", str(folder)])
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-input"]
    _call(place, [*install, *source, "--", *requirements])
    shutil.rmtree(wheels, ignore_errors=True)
    (folder / "complete").write_text("")


def _call(place: AgreedFolder, command: list[str]) -> None:
    done = subprocess.run(
        command,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        text = done.stdout.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
        raise HostError(f"{Path(command[0]).name} {command[1]}: " + " / ".join(text))


def last_lines(path: Path, count: int) -> str:
    """Return the last lines of a file that say something, in one."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _CHUNK))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [line.strip(" =_-") for line in lines]
    return " / ".join([line for line in said if line][-count:])


def digest_on_disk(path: Path) -> str:
    """Return the SHA-256 of a file, empty if it is not there."""
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
    except FileNotFoundError:
        return ""
    return hasher.hexdigest()


def _write(path: Path, content: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content), "utf-8")
    part.replace(path)


def _prepared_by_itself(place: AgreedFolder) -> dict[str, Any]:
    """Prepare the project in a process group of its own, which can be ended."""
    with suppress(OSError):  # it leads a session
        os.setpgid(0, 0)
    _write(place.installer, _record_of(os.getpid()))
    return prepare_project(place)


def _lift_bounds() -> None:
    """Let files be as large as this machine lets them: ours may be bounded by whoever collects."""
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def main(arguments: list[str], source: str = "") -> int:
    """Do what one call asks for, and print the line about it."""
    _lift_bounds()
    command, folder, tag = arguments[:3]
    place = AgreedFolder(folder, tag)
    commands: dict[str, Callable[[], dict[str, Any]]] = {
        "look": lambda: look_around(place, source),
        "missing": lambda: missing_files(place),
        "prepare": lambda: _prepared_by_itself(place),
        "run": lambda: run_suite(place),
        "status": lambda: run_status(place, float(arguments[3])),
        "collect": lambda: last_answer(place),
        "stop": lambda: stop(place),
        "clean": lambda: clean(place),
    }
    try:
        answer = {"ok": True, **commands[command]()}
    except (OSError, HostError, ValueError, KeyError) as error:
        answer = {"ok": False, "reason": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0 if answer["ok"] else 1
