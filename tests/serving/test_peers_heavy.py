"""Programs of others beside the service: a client, a fuzzer of OpenAPI, and Prometheus."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import onnx
import pytest

from pytest_ortbench.serving.metrics import SERVICE_METRICS
from pytest_ortbench.store.documents import load
from pytest_ortbench.store.folder import RunFolder
from tests.beside_packages import ROOT, interpreter_beside, run_beside
from tests.serving.served import looked_up, lookup
from tests.serving.started import Started, free_port, started

pytestmark = pytest.mark.heavy

INFER = "/v2/models/m/infer"
#: Cases that the fuzzer makes of each operation.
FUZZED = 30

_CLIENT = """
import sys
import numpy as np
import tritonclient.http as client

made = client.InferenceServerClient(sys.argv[1])
assert made.is_server_live() and made.is_server_ready() and made.is_model_ready("m")
told = made.get_model_metadata("m")
assert [tensor["name"] for tensor in told["inputs"]] == ["ids", "x"]
ids, x = np.array([3, 9]), np.full((2, 3), 2, dtype=np.float32)
answers = []
for binary in (True, False):
    inputs = [client.InferInput("ids", [2], "INT64"), client.InferInput("x", [2, 3], "FP32")]
    inputs[0].set_data_from_numpy(ids, binary_data=binary)
    inputs[1].set_data_from_numpy(x, binary_data=binary)
    wanted = [client.InferRequestedOutput(name, binary_data=binary) for name in ("sum", "log")]
    answer = made.infer("m", inputs, outputs=wanted, request_id="seven")
    assert answer.get_response()["id"] == "seven"
    answers.append([answer.as_numpy(name) for name in ("sum", "log")])
for first, second in zip(*answers):
    assert first.dtype == np.float32 and first.shape == (2, 3)
    np.testing.assert_array_equal(first, second)
np.testing.assert_allclose(answers[0][1], np.log(x), rtol=1e-6)
try:
    made.infer("n", inputs)
except client.InferenceServerException as error:
    assert error.status() == "404", error.status()
    assert error.message()
else:
    raise AssertionError("another model answered")
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Serves a small model, requests joined."""
    folder = tmp_path_factory.mktemp("model")
    onnx.save(looked_up(), folder / "lookup.onnx")
    with started(folder / "lookup.onnx", folder, "--batch=4") as made:
        yield made


@pytest.mark.needs("network")
def test_the_client_of_triton_works_against_it(service: Started, tmp_path: Path) -> None:
    python = interpreter_beside(("tritonclient[http]",))
    (tmp_path / "client.py").write_text(_CLIENT, encoding="utf-8")
    run_beside(python, "client.py", f"127.0.0.1:{service.port}", folder=tmp_path)


@pytest.mark.needs("network")
def test_a_fuzzer_of_its_openapi_finds_no_server_error(service: Started, tmp_path: Path) -> None:
    python = interpreter_beside(("schemathesis>=4",))
    command = Path(python).with_name("schemathesis")
    before = service.counted()
    checks = "not_a_server_error,status_code_conformance,content_type_conformance"
    run_beside(
        str(command),
        "run",
        f"http://127.0.0.1:{service.port}/openapi.json",
        f"--checks={checks},response_schema_conformance",
        # The number of cases is bounded, and not its time: a busy machine would try less.
        f"--max-examples={FUZZED}",
        "--suppress-health-check=too_slow,filter_too_much",
        "--seed=7",
        "--phases=examples,coverage,fuzzing",
        folder=tmp_path,
    )
    counted = service.counted()
    codes = {
        name.partition('"')[2][:3]: int(count - before.get(name, 0))
        for name, count in counted.items()
        if name.startswith("ortbench_serve_requests_total")
    }
    print(f"requests by status: {codes}")
    assert not [code for code in codes if code.startswith("5")]
    assert sum(codes.values()) > 100
    # The fuzzer got past the checks: the model ran on its requests.
    assert codes["200"] > 0
    assert service.ask("POST", INFER, lookup([4]))[0] == 200


@contextmanager
def _prometheus(folder: Path, *ports: int) -> Iterator[int]:
    """A Prometheus that scrapes ports of loopback twice a second; gives its own port."""
    program = shutil.which("prometheus")
    assert program is not None
    targets = [f"127.0.0.1:{port}" for port in ports]
    scrape = {"job_name": "served", "static_configs": [{"targets": targets}]}
    settings = {"global": {"scrape_interval": "500ms"}, "scrape_configs": [scrape]}
    # JSON is YAML, too.
    (folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    command = [program, "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    port = free_port()
    process = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"], cwd=folder, stderr=subprocess.DEVNULL
    )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(timeout=60)


def _asked_of_prometheus(port: int, query: str) -> list[dict[str, Any]]:
    """The samples that a query gives; nothing while Prometheus starts."""
    path = f"/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.request("GET", path)
            answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return []
    found: list[dict[str, Any]] = answer.get("data", {}).get("result", [])
    return found


@pytest.mark.needs("prometheus")
def test_a_prometheus_scrapes_it(service: Started, tmp_path: Path) -> None:
    """Every metric that is promised can be asked for there; a histogram by its buckets."""
    assert service.ask("POST", INFER, lookup([4]))[0] == 200
    assert service.ask("POST", INFER, b"{")[0] == 400
    with _prometheus(tmp_path, service.port) as port:
        until = time.monotonic() + 60
        while not _asked_of_prometheus(port, "up == 1") and time.monotonic() < until:
            time.sleep(0.2)
        for name in (*SERVICE_METRICS, "process_resident_memory_bytes"):
            found = _asked_of_prometheus(port, f'{{__name__=~"{name}(_bucket)?"}}')
            assert found, name
        codes = _asked_of_prometheus(port, "sum by (code) (ortbench_serve_requests_total)")
        assert {"200", "400"} <= {sample["metric"]["code"] for sample in codes}
        quantile = "histogram_quantile(0.99, ortbench_serve_request_seconds_bucket)"
        assert _asked_of_prometheus(port, quantile)


@contextmanager
def _metrics(results: Path) -> Iterator[int]:
    """``ortbench metrics`` over a results folder; gives its port."""
    command = [sys.executable, "-m", "pytest_ortbench.cli", "metrics", str(results), "--port=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[0].split(":")[2].split("/")[0])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.needs("prometheus")
def test_every_query_of_the_dashboard_returns_data(service: Started, tmp_path: Path) -> None:
    """Asked of a real Prometheus that scrapes the service and the numbers of runs."""
    dashboard = json.loads(files("pytest_ortbench.report").joinpath("dashboard.json").read_text())
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())
    ]
    assert len(queries) > 12
    results, run = tmp_path / "results", load(ROOT / "results" / "example" / "run.json")
    folder = RunFolder.create(results, replace(run, finished_at=None, cases=()))
    for result in run.cases:
        folder.append(result)
    (tmp_path / "prometheus").mkdir()
    with (
        _metrics(results) as metrics,
        _prometheus(tmp_path / "prometheus", service.port, metrics) as port,
    ):
        until = time.monotonic() + 120
        empty = queries
        while empty and time.monotonic() < until:
            assert service.ask("POST", INFER, lookup([4]))[0] == 200
            assert service.ask("POST", INFER, b"{")[0] == 400
            time.sleep(0.5)
            empty = [query for query in empty if not _data(port, query)]
        assert empty == []


def _data(port: int, query: str) -> bool:
    """Whether a query of the dashboard gives numbers, its variables filled in as Grafana does."""
    for variable, value in (("$__rate_interval", "10s"), ("$job", ".*"), ("$model", ".*")):
        query = query.replace(variable, value)
    samples = _asked_of_prometheus(port, query)
    return any(sample["value"][1] != "NaN" for sample in samples)
