"""Requests to a service that the run has started, and what it uses for them."""

from __future__ import annotations

import http.client
import json
import shlex
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import psutil

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.element_types import element_of
from pytest_ortbench.core.errors import (
    OrtbenchError,
    WorkerError,
    class_and_line,
    first_line,
    says,
)
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.python_profile import PythonProfile
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.service_process import ServiceProcess, profiled_command
from pytest_ortbench.passes.served.facts import MOST_S, ServiceUse
from pytest_ortbench.planning.endpoints import URL
from pytest_ortbench.planning.served_apps import APP, REFERENCE
from pytest_ortbench.schema.wire import from_plain
from pytest_ortbench.serving.protocol import (
    InferRequest,
    WireMessage,
    WireTensor,
    decode_error,
    encode_request,
)
from pytest_ortbench.serving.tensor_values import DATATYPE_OF
from pytest_ortbench.worker.inputs import make_feeds

_WARM_UP, _REQUESTS = 20, 500
#: Requests that a profiler of Python looks at, the largest file of what it found, and how often the
#: file is looked for, in seconds.
_PROFILED, _MOST_BYTES, _LOOK_S = 100, 1 << 20, 0.05
_TIMEOUT_S = 60.0
#: Within which a service is gone that has closed its connection for that.
_ENDING_S = 1.0
#: Steps that a service may tell of a request, and characters of their names.
_MOST_STEPS, _LONGEST_STEP = 20, 40


def measure(result: CaseResult, means: Means) -> ServiceUse:
    """Send requests one after the other, and read what the service used for them.

    Raises:
        WorkerError: if the service ends meanwhile, or does not answer.
    """
    case = result.case
    process = means.launcher.service_of(case)
    if process is None:
        return ServiceUse(reason="this run has not started the service")
    address = urlsplit(case.provider.options[URL])
    encodings = [each.options_in_force.get("encoding", "") for each in result.measurements]
    if not encodings:
        return ServiceUse(reason="no worker finished, so the encoding of requests is not known")
    message = message_of(case, encodings[-1])
    steps: dict[str, list[float]] = defaultdict(list)
    durations: list[int] = []
    host, port = address.hostname or "", address.port or 0
    with closing(http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)) as connection:
        for _ in range(_WARM_UP):
            _ask(connection, address.path, message, process)
        before, until = process.use(), time.monotonic() + MOST_S
        while len(durations) < _REQUESTS and time.monotonic() < until:
            began = time.perf_counter_ns()
            timing = _ask(connection, address.path, message, process)
            durations.append(time.perf_counter_ns() - began)
            for name, milliseconds in steps_told(timing, took_ns=durations[-1]).items():
                steps[name].append(milliseconds)
        after = process.use()
    profiles = _profiled(case, process, address.path, message)
    return ServiceUse(
        app=case.provider.options[APP],
        durations_ns=tuple(durations),
        steps_ns={name: round(1e6 * median(each)) for name, each in steps.items()},
        cpu_ns=round(1e9 * (after.cpu_s - before.cpu_s)),
        resident_bytes=after.resident_bytes,
        processes=after.processes,
        python=profiles,
        cpus=allowance().cpus,
        memory_bytes=psutil.virtual_memory().total,
    )


def _profiled(
    case: Case, process: ServiceProcess, path: str, message: WireMessage
) -> tuple[PythonProfile, ...]:
    """What profilers of Python find in the service, which is started anew for each of them."""
    asked = case.sampling.python_profile
    if not asked or case.provider.options[APP] == REFERENCE:
        return ()
    plain = process.command
    try:
        return tuple(_profile(name, plain, process, path, message) for name in asked)
    finally:
        process.start_as(plain)


def _profile(
    profiler: str, plain: Sequence[str], process: ServiceProcess, path: str, message: WireMessage
) -> PythonProfile:
    with closing(OwnFolder("profile")) as own:
        file = own.path / "found.json"
        command = profiled_command(plain, profiler, file, warm_up=_WARM_UP, rounds=_PROFILED)
        try:
            process.start_as(command)
            connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=_TIMEOUT_S)
            with closing(connection):
                for _ in range(_WARM_UP + _PROFILED):
                    _ask(connection, path, message, process)
        except WorkerError as error:
            return PythonProfile(profiler=profiler, reason=f"{error.failure.kind}: {error}")
        until = time.monotonic() + _TIMEOUT_S
        while not file.exists() and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return _read(file, profiler)


def _read(file: Path, profiler: str) -> PythonProfile:
    """Read what a service wrote down; it comes from a process of the user's."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        found = json.loads(file.read_bytes())
        return from_plain(
            PythonProfile, {"profiler": profiler, "rounds": _PROFILED, "reason": "", **found}
        )
    except (OSError, TypeError, ValueError, OrtbenchError) as error:
        said = says("Python", class_and_line(error))
        reason = f"what the service wrote down can't be read ({said})"
        return PythonProfile(profiler=profiler, reason=reason)


def steps_told(header: str, *, took_ns: int) -> dict[str, float]:
    """Return the steps that the header ``Server-Timing`` tells, in milliseconds by their names.

    Args:
        header: Its value.
        took_ns: What the request took at the client, which no step of it exceeds.
    """
    told: dict[str, float] = {}
    for part in header.split(",")[:_MOST_STEPS]:
        name, _, rest = part.strip().partition(";")
        for setting in rest.split(";"):
            key, _, value = setting.strip().partition("=")
            try:
                milliseconds = float(value)
            except ValueError:
                continue
            if (
                key == "dur"
                and 0 <= milliseconds <= took_ns * 1e-6
                and 0 < len(name) <= _LONGEST_STEP
            ):
                told[name] = milliseconds
    return told


def message_of(case: Case, encoding: str) -> WireMessage:
    """Return the request for the inference that a case times.

    Args:
        case: The case.
        encoding: ``json``, or anything else for tensors as bytes.
    """
    feeds: Mapping[str, Any] = make_feeds(case.inputs, seed=case.seed)
    tensors = tuple(
        WireTensor(
            name=spec.name, datatype=DATATYPE_OF[element_of(spec.type)], array=feeds[spec.name]
        )
        for spec in case.inputs
    )
    binary = encoding != "json"
    return encode_request(InferRequest(inputs=tensors, binary=binary), binary=binary)


def _ask(
    connection: http.client.HTTPConnection,
    path: str,
    message: WireMessage,
    process: ServiceProcess,
) -> str:
    """Send one request, and return what the service tells of its steps."""
    by_hand = f"Start the service by hand to see what it prints: {shlex.join(process.command)}"
    service = f"the service at {connection.host}:{connection.port}"
    try:
        connection.request("POST", path, message.body, message.headers)
        response = connection.getresponse()
        body = response.read()
    except TimeoutError as error:
        raise case_error(
            f"{service} did not answer a request within {_TIMEOUT_S:g} s",
            "Let it answer faster, e.g. load the model once, when the service starts",
            kind="error",
        ) from error
    except OSError as error:
        ended = process.wait(_ENDING_S)
        if ended is not None:
            raise case_error(
                f"{service} {ended} while requests were sent to it",
                "Let the service run until the measurement is over"
                if ended.exit_code == 0
                else by_hand,
                kind="error",
            ) from error
        owner = "the system" if error.strerror else "Python"
        said = says(owner, error.strerror or first_line(error))
        raise case_error(f"{service} gave no answer ({said})", by_hand, kind="error") from error
    except http.client.HTTPException as error:
        raise case_error(
            f"{service} gave no valid answer ({says('Python', class_and_line(error))})",
            by_hand,
            kind="error",
        ) from error
    if response.status != 200:
        said = decode_error(body)
        quoted = f" ({says('it', said)})" if said else ""
        is_limit = response.status == HTTPStatus.TOO_MANY_REQUESTS
        raise case_error(
            f"{service} answered with status {response.status}{quoted}",
            "Switch off its limit of requests for the measurement" if is_limit else by_hand,
            kind="error",
        )
    return response.headers.get("Server-Timing", "")
