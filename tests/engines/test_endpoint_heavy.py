"""The client of an endpoint against services of others: MLServer, and NVIDIA's Triton."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.engines.seam import EngineRefusal
from tests.beside_packages import interpreter_beside
from tests.engines.test_endpoint import X, Y, endpoint, sent

#: Seconds that a service may take to start.
START_S = 120.0
MLSERVER = """
import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Relu(MLModel):
    async def load(self):
        return True

    async def predict(self, payload):
        x = NumpyCodec.decode_input(payload.inputs[0])
        y = np.maximum(x, 0).astype("float32")
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output("y", y)]
        )
"""
TRITON = """
import sys
import numpy as np
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

http, grpc, metrics = (int(port) for port in sys.argv[1:])


def relu(requests):
    return [{"y": np.maximum(request.data["x"], 0)} for request in requests]


config = TritonConfig(
    http_address="127.0.0.1", http_port=http, grpc_address="127.0.0.1", grpc_port=grpc,
    metrics_address="127.0.0.1", metrics_port=metrics,
)
with Triton(config=config) as triton:
    triton.bind(
        model_name="relu",
        infer_func=relu,
        inputs=[Tensor(name="x", dtype=np.float32, shape=(-1, 4))],
        outputs=[Tensor(name="y", dtype=np.float32, shape=(-1, 4))],
        config=ModelConfig(batching=False),
    )
    triton.serve()
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


@contextmanager
def running(
    command: Sequence[str], folder: Path, port: int, *, may_not_start: bool = False
) -> Iterator[str]:
    """Start a service, wait until its model is ready, and give the model's address."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    root = f"http://127.0.0.1:{port}/v2/models/relu"
    try:
        until = time.monotonic() + START_S
        while not is_ready(f"{root}/ready"):
            told = (folder / "service.log").read_text(errors="replace")[-3000:]
            if may_not_start and process.poll() is not None:
                pytest.skip(f"the service does not start with this Python: {told[-300:]}")
            assert process.poll() is None, told
            assert time.monotonic() < until, told
            time.sleep(0.2)
        yield f"{root}/infer"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def mlserver(folder: Path) -> Iterator[tuple[str, str]]:
    """Run MLServer, and give the model's address over HTTP and over gRPC."""
    http, grpc, metrics = free_ports(3)
    python = Path(interpreter_beside(("mlserver",)))
    (folder / "relu_runtime.py").write_text(MLSERVER)
    settings = {
        "host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics,
        "parallel_workers": 0,
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    model = {
        "name": "relu",
        "implementation": "relu_runtime.Relu",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}],
    }
    (folder / "model-settings.json").write_text(json.dumps(model))
    with running((str(python.parent / "mlserver"), "start", "."), folder, http) as url:
        yield url, f"grpc://127.0.0.1:{grpc}/relu"


@contextmanager
def triton(folder: Path) -> Iterator[str]:
    """Run Triton, whose backend for Python is built for one patch release of it."""
    ports = free_ports(3)
    python = interpreter_beside(("nvidia-pytriton",))
    (folder / "service.py").write_text(TRITON)
    command = (python, "service.py", *map(str, ports))
    with running(command, folder, ports[0], may_not_start=True) as url:
        yield url


@pytest.mark.heavy
@pytest.mark.parametrize("encoding", ["", "json"])
def test_mlserver_answers(tmp_path: Path, encoding: str) -> None:
    with mlserver(tmp_path) as (url, _):
        with closing(endpoint(url, encoding)) as engine:
            [outputs] = engine.open()({"x": X})
            server = engine.in_force()["server"]
        found = sent(url, 50)
    np.testing.assert_array_equal(outputs, Y)
    assert server.startswith("mlserver")
    assert (found.sent, found.failed) == (50, {})


@pytest.mark.heavy
@pytest.mark.parametrize("encoding", ["", "json", "binary"])
def test_triton_answers(tmp_path: Path, encoding: str) -> None:
    with triton(tmp_path) as url:
        with closing(endpoint(url, encoding)) as engine:
            [outputs] = engine.open()({"x": X})
            in_force = engine.in_force()
        found = sent(url, 50)
    np.testing.assert_array_equal(outputs, Y)
    assert in_force["encoding"] == (encoding or "binary")
    assert in_force["server"].startswith("triton")
    assert (found.sent, found.failed, found.encoding) == (50, {}, "binary")


@pytest.mark.heavy
def test_mlserver_answers_over_grpc(tmp_path: Path) -> None:
    pytest.importorskip("tritonclient.grpc", reason="pip install 'pytest-ortbench[grpc]'")
    with mlserver(tmp_path) as (_, url):
        with closing(endpoint(url)) as engine:
            [outputs] = engine.open()({"x": X})
            in_force = engine.in_force()
        found = sent(url, 50)
        other = endpoint(url.replace("relu", "gelu"))
        with closing(other), pytest.raises(EngineRefusal) as caught:
            other.open()
    np.testing.assert_array_equal(outputs, Y)
    assert (in_force["protocol"], in_force["encoding"]) == ("grpc", "binary")
    assert (found.sent, found.failed) == (50, {})
    assert caught.value.kind == "unavailable"
