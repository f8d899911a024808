"""What the service carries: half of its capacity is VALID, twice is not; minutes at 80 % of it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.passes.served.run import message_of
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.serving.protocol import WireMessage
from pytest_ortbench.session import Session
from tests.serving.started import Started, free_port, started

pytestmark = [pytest.mark.heavy, pytest.mark.timed]

INFER = "/v2/models/m/infer"
#: Callers that ask without a pause, and for how long, while the capacity is sought.
CALLERS, SECONDS = 4, 5.0
MODELS = ("builtin:bert_tiny", "builtin:mobilenet_v2", "zoo:rapidocr-cls")


def example(model: str, folder: Path) -> WireMessage:
    """The request that the load consists of, too."""
    request = PlanRequest(models=(model,), generate="off")
    with Session(folder, notify=print) as session:
        case = session.prepare(session.plan(request).entries[0])
    return message_of(case, "binary")


def capacity_of(service: Started, message: WireMessage) -> float:
    """Requests a second of some callers together."""
    counts = [0] * CALLERS
    until = time.monotonic() + SECONDS

    def ask(number: int) -> None:
        with closing(service.connection()) as connection:
            while time.monotonic() < until:
                connection.request("POST", INFER, message.body, message.headers)
                response: http.client.HTTPResponse = connection.getresponse()
                response.read()
                assert response.status == 200
                counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


def measured(folder: Path, *options: str) -> dict[str, Any]:
    """The case of an endpoint, measured by pytest in a process of its own."""
    command = [
        sys.executable, "-m", "pytest", "--pyargs", "pytest_ortbench.suites", "-q", "-p",
        "no:cacheprovider", "--ort-providers=endpoint", "--ort-workers=1", "--ort-time=2",
        "--ort-json=run.json", "--ort-no-results", *options,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    document = folder / "run.json"
    assert document.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    print(done.stdout)
    (case,) = json.loads(document.read_text(encoding="utf-8"))["cases"]
    found: dict[str, Any] = case
    return found


@pytest.mark.parametrize("model", MODELS)
def test_half_of_the_capacity_is_valid_and_twice_is_not(model: str, tmp_path: Path) -> None:
    """The limit is ten times what the callers waited for an answer."""
    message = example(model, tmp_path)
    with started(Path(model), tmp_path) as service:
        capacity = capacity_of(service, message)
        limit_ms = 10 * 1000 * CALLERS / capacity
        loads = ",".join(
            f"server:{share * capacity:.1f}:{limit_ms:.0f}ms:p90" for share in (0.5, 2.0)
        )
        url = f"http://127.0.0.1:{service.port}{INFER}"
        case = measured(
            tmp_path,
            "-k", "test_load",
            f"--ort-models={model}",
            f"--ort-endpoint={url}",
            "--ort-endpoint-encoding=binary",
            f"--ort-load={loads}",
        )  # fmt: skip
    print(f"{model}: {capacity:.1f}/s")
    assert case["status"] == "measured"
    half, twice = (load["tests"][0] for load in case["loads"])
    assert (half["valid"], twice["valid"]) == (True, False)
    assert half["exchanges"]["failed"] == {}


def test_ten_minutes_at_80_percent_lose_nothing_and_memory_stays(tmp_path: Path) -> None:
    case = measured(
        tmp_path,
        "-k", "test_latency",
        "--ort-models=builtin:bert_tiny",
        "--ort-serve=reference",
        f"--ort-serve-port={free_port()}",
        "--ort-endurance=10",
    )  # fmt: skip
    found = case["endurance"]
    assert found["reason"] == ""
    assert found["seconds"] > 590
    assert found["exchanges"]["failed"] == {}
    sizes = found["resident_bytes"]
    later = sizes[len(sizes) // 4 :]
    assert max(later) <= 1.05 * later[0]
