"""What a worker of Dask does for a shard: it keeps files by digest, plans, and runs pytest.

Dask sends these functions by name, so that a worker needs this package, of the same version, with
the ONNX Runtime that is measured. What they return is data: the bytes of a document, and words.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.hosts import host
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.runtimes.installed import installed

#: The topic of Dask's events under which an attempt tells that it begins.
TOPIC = "ortbench-shards"
_PLUGIN = "pytest_ortbench.plugin.shard"
#: Seconds that a worker which came late waits for its files.
_FILES_S = 600.0
_LINES = 4
#: Variables that say where the worker's own packages are.
_OWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
#: Journals and documents above this size stay on the worker.
MOST_BYTES = 1 << 30


def place_of(folder: str, tag: str, attempt: str = "") -> host.AgreedFolder:
    """Return the place of one attempt; without one, of what all of them share."""
    return host.AgreedFolder(folder, f"{tag}-{attempt}" if attempt else tag)


def facts_of_worker() -> dict[str, Any]:
    """Tell what has to be alike on all workers, and how the machine is called."""
    machine = fingerprint()
    versions = " ".join(sorted(package.requirement for package in installed().distributions))
    return {
        "host": machine.host,
        "pytest-ortbench": VERSION,
        "stable": {
            **machine.stable,
            "python": ".".join(map(str, sys.version_info[:2])),
            "onnxruntime": versions,
        },
    }


async def missing_blobs(folder: str, tag: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Tell which files are not here, or not as they were; refuse if there is no room for them."""
    return await asyncio.to_thread(_missing, place_of(folder, tag), sizes)


def _missing(place: host.AgreedFolder, sizes: Mapping[str, int]) -> dict[str, Any]:
    try:
        for path in (place.blobs, place.folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)
        place.folder.chmod(0o700)
        absent = [name for name in sizes if host.digest_on_disk(place.blobs / name) != name]
        needed = sum(sizes[name] for name in absent)
        free = shutil.disk_usage(place.folder).free
    except OSError as error:
        return {"reason": str(error)}
    if free < 2 * needed:
        return {
            "reason": f"{place.folder} has {free / 1e6:.0f} MB free, not {2 * needed / 1e6:.0f}"
        }
    return {"absent": absent}


async def keep_pack(folder: str, tag: str, pack: bytes) -> None:
    """Keep the small files."""
    path = place_of(folder, tag).folder / "tmp" / f"{tag}-{os.getpid()}.tar"

    def unpack() -> None:
        path.write_bytes(pack)
        host.unpack(path, path.parents[1] / "blobs")
        path.unlink()

    await asyncio.to_thread(unpack)


async def keep_part(folder: str, tag: str, digest: str, part: bytes, *, last: bool) -> None:
    """Keep the next part of a large file; the last one makes it whole.

    Raises:
        ValueError: if it is another file then.
    """
    blobs = place_of(folder, tag).blobs
    path = blobs / f"{digest}.{os.getpid()}"

    def append() -> None:
        with path.open("ab") as stream:
            stream.write(part)
        if last and host.digest_on_disk(path) != digest:
            path.unlink()
            raise ValueError(f"{digest} came as another file")
        if last:
            path.replace(blobs / digest)

    await asyncio.to_thread(append)


def plan_suite(folder: str, tag: str, parcel: str) -> dict[str, Any]:
    """Collect the suite; return its models and how many cases each has.

    Args:
        folder: The folder on this machine.
        tag: Of the run.
        parcel: Digest of the file that says what the project holds, and the arguments.
    """
    place = place_of(folder, tag, secrets.token_hex(4))
    try:
        told = place.run / "plan.json"
        code = _pytest(place, parcel, {"plan": str(told)}, ["--collect-only", "-q"])
        output = host.last_lines(place.output, _LINES)
        plan = json.loads(told.read_text("utf-8")) if told.exists() else {}
        return {"code": code, "output": output, **plan}
    finally:
        shutil.rmtree(place.run, ignore_errors=True)


def measure_models(folder: str, tag: str, parcel: str, models: Sequence[str]) -> dict[str, Any]:
    """Measure all cases of some models in one run of pytest, and return its document.

    Args:
        folder: The folder on this machine.
        tag: Of the run.
        parcel: As of :func:`plan_suite`.
        models: As the plan calls them.
    """
    from distributed import get_worker  # an extra

    attempt = secrets.token_hex(4)
    worker = get_worker()
    # Dask writes the worker's address into events, under the name of "worker".
    told = {"tag": tag, "attempt": attempt, "name": str(worker.name), "models": list(models)}
    worker.log_event(TOPIC, {**told, "began": time.time()})
    place = place_of(folder, tag, attempt)
    try:
        code = _pytest(place, parcel, {"models": list(models)}, [])
        name, document = _document(place)
        answer = {"code": code, "file": name, "document": document}
        return {**told, **answer, "output": host.last_lines(place.output, _LINES)}
    except (OSError, ValueError) as error:
        return {**told, "code": None, "file": "", "document": b"", "output": str(error)}
    finally:
        shutil.rmtree(place.run, ignore_errors=True)


def stop_runs(folder: str, tag: str) -> int:
    """End what runs here for a tag; return how many runs there were."""
    runs = place_of(folder, tag).run.parent.glob(f"{tag}-*")
    answers = [host.stop(host.AgreedFolder(folder, path.name)) for path in runs]
    return sum(answer["stopped"] for answer in answers)


def clear_runs(folder: str, tag: str) -> None:
    """Remove what attempts left whose workers were killed."""
    for path in place_of(folder, tag).run.parent.glob(f"{tag}-*"):
        shutil.rmtree(path, ignore_errors=True)


def _pytest(
    place: host.AgreedFolder, parcel: str, order: Mapping[str, Any], options: Sequence[str]
) -> int:
    """Lay out the project and run pytest in it; it ends with this process."""
    content = json.loads(_awaited(place, [parcel])[0].read_text("utf-8"))
    _awaited(place, [entry["digest"] for entry in content["files"]])
    place.run.mkdir(parents=True)
    host.lay_out_project(place, content["files"])
    reads, writes = os.pipe()
    told = place.run / "shard.json"
    told.write_text(json.dumps({**order, "pipe": reads}), "utf-8")
    try:
        return host.run_pytest(
            place,
            sys.executable,
            ["-p", _PLUGIN, *options, *content["arguments"]],
            # Unlike on a machine that ssh reaches, the worker's own environment measures.
            {name: os.environ[name] for name in _OWN if name in os.environ}
            | {"ORTBENCH_SHARD": str(told)},
            (reads,),
        )
    finally:
        os.close(reads)
        os.close(writes)


def _awaited(place: host.AgreedFolder, digests: Sequence[str]) -> list[Path]:
    """Return files by their digests, once they are here.

    Raises:
        ValueError: if one does not come.
    """
    ends = time.monotonic() + _FILES_S
    paths = [place.blobs / digest for digest in digests]
    while absent := [path.name for path in paths if not path.exists()]:
        if time.monotonic() > ends:
            raise ValueError(f"{len(absent)} files of the project did not come, {absent[0]} first")
        time.sleep(0.2)
    return paths


def _document(place: host.AgreedFolder) -> tuple[str, bytes]:
    """Return name and content of the document, else of the journal; empty if there is neither."""
    for name in ("run.json", "journal.jsonl"):
        path = host.stored_file(place, name)
        if path is not None:
            if path.stat().st_size > MOST_BYTES:
                raise ValueError(f"{name} is larger than {MOST_BYTES >> 20} MiB")
            return name, path.read_bytes()
    return "", b""
