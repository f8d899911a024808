"""A service that a run starts: an application of the user's, measured beside the session."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.served_apps import read_app, read_name, read_port, with_service
from tests.launch.cases import relu
from tests.serving.started import free_port

APP = """
import json
from pathlib import Path

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(str(Path(__file__).with_name("net.onnx")))
TENSOR = {"datatype": "FP32", "shape": [-1, 4]}
TOLD = {"name": "net", "versions": ["1"], "platform": "mine",
        "inputs": [{"name": "x", **TENSOR}], "outputs": [{"name": "y", **TENSOR}]}

def think():
    for _ in range(20_000):
        pass

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body")
    status, answer, timing = 404, {"error": "no such path"}, b""
    if scope["path"] == "/v2/models/net":
        status, answer = 200, TOLD
    elif scope["path"] == "/v2/models/net/infer":
        think()
        [x] = json.loads(body)["inputs"]
        [y] = session.run(None, {"x": np.array(x["data"], dtype=np.float32).reshape(x["shape"])})
        output = {**TENSOR, "name": "y", "shape": y.shape, "data": y.ravel().tolist()}
        status, answer = 200, {"model_name": "net", "outputs": [output]}
    headers = [(b"content-type", b"application/json"), (b"server-timing", b"mine;dur=0.001")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})
"""


def test_an_application_is_started_measured_and_ended(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    relu(pytester.path / "net.onnx")
    (pytester.path / "app.py").write_text(APP, encoding="utf-8")
    port = free_port()
    pytester.runpytest(
        "net.onnx",
        "--ort-serve=app.py:app",
        f"--ort-serve-port={port}",
        "--ort-time=0.06",
        "--ort-workers=1",
        "--ort-yardstick=off",
        "--ort-profile-python=cprofile",
        "--ort-json=out.json",
        "--ort-no-results",
    )
    document = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    bare, served = document["cases"]
    assert [case["case"]["provider"]["role"] for case in (bare, served)] == ["provider", "endpoint"]
    assert [case["status"] for case in (bare, served)] == ["measured", "measured"]
    assert bare["served"] is None
    use = served["served"]
    app = f"{(pytester.path / 'app.py').resolve()}:app"
    assert (use["app"], use["reason"], use["processes"]) == (app, "", 1)
    assert use["steps_ns"] == {"mine": 1000}
    assert use["durations_ns"]
    assert use["resident_bytes"] > 0
    [profile] = use["python"]
    assert (profile["profiler"], profile["reason"]) == ("cprofile", "")
    [own] = [row for row in profile["functions"] if row["name"] == "think"]
    assert own["file"].endswith("app.py")
    assert own["line"] == APP.splitlines().index("def think():") + 1
    assert own["calls"] == profile["rounds"] > 0
    listening = [
        one for one in psutil.net_connections("tcp") if one.laddr and one.laddr.port == port
    ]
    assert [one for one in listening if one.status == psutil.CONN_LISTEN] == []


#: It starts and describes the model, and fails each request for an inference.
FAILING = APP.replace("        think()\n", "        raise SystemError('out-of-order')\n")


@pytest.mark.parametrize(
    ("source", "status", "phase"),
    [
        ("raise SystemError('out-of-order')", "unavailable", "start"),
        (FAILING, "error", "first"),
    ],
    ids=["start", "request"],
)
def test_an_application_that_does_not_work_is_a_failure_with_its_log(
    pytester: pytest.Pytester, source: str, status: str, phase: str
) -> None:
    relu(pytester.path / "net.onnx")
    (pytester.path / "app.py").write_text(source, encoding="utf-8")
    pytester.runpytest(
        "net.onnx",
        "--ort-serve=app.py:app",
        f"--ort-serve-port={free_port()}",
        "--ort-providers=endpoint",
        "--ort-json=out.json",
        "--ort-no-results",
    )
    document = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    (served,) = document["cases"]
    assert served["status"] == status
    assert served["failure"]["phase"] == phase
    assert "out-of-order" in served["failure"]["log_tail"]


def written(text: str, base: Path) -> OptionText:
    return OptionText(texts=(text,), place="--ort-serve", is_typed=True, base=base)


@pytest.mark.parametrize(
    "text",
    ["app", "app.py", "app.py:", ":app", "app.py:a-b", "none.py:app", "my-app.py:app", "a.txt:app"],
)
def test_what_is_no_application_is_refused(text: str, tmp_path: Path) -> None:
    for name in ("app.py", "my-app.py", "a.txt"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError) as refused:
        read_app(written(text, tmp_path))
    assert refused.value.place == "--ort-serve"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("src/main.py", "--ort-serve=src/main.py:app."),
        ("src.main:api", "--ort-serve=src/main.py:api."),
        ("app", "--ort-serve=app.py:app."),
        ("src/my-app.py:api", "--ort-serve=src/my_app.py:api"),
    ],
)
def test_an_application_in_another_form_gets_its_own_step(
    text: str, meant: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        read_app(written(text, tmp_path))
    assert meant in f"{refused.value.hint} "


@pytest.mark.parametrize(("name", "other"), [("my-app", "my_app"), ("1app", "app_1app")])
def test_a_file_that_python_can_not_import_gets_another_name(
    name: str, other: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        read_app(written(f"{name}.py:app", tmp_path))
    assert refused.value.hint.endswith(f"--ort-serve={other}.py:app")


def test_an_application_is_known_by_its_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    assert read_app(written("app.py:app", tmp_path)) == f"{tmp_path.resolve()}/app.py:app"
    assert read_app(written("reference", tmp_path)) == "reference"


def test_ports_and_names_are_those_that_can_be(tmp_path: Path) -> None:
    assert read_port(written("8123", tmp_path)) == 8123
    assert read_name(written("det-2", tmp_path)) == "det-2"
    for read, text in ((read_port, "0"), (read_port, "65536"), (read_name, "a/b")):
        with pytest.raises(UsageError):
            read(written(text, tmp_path))


def test_a_service_is_an_endpoint_of_its_one_model() -> None:
    request = PlanRequest(models=("models/det.onnx",), serve="reference", serve_port=8123)
    placed = with_service(request)
    assert placed.endpoint == "http://127.0.0.1:8123/v2/models/det/infer"
    assert placed.provider_options == {"endpoint": {"app": "reference"}}
    assert with_service(placed) == placed
    with pytest.raises(UsageError):
        with_service(PlanRequest(models=("a.onnx", "b.onnx"), serve="reference"))
