"""Models of a hub, fetched by the hub's own client from a stand-in on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.file_digest import file_digest

pytestmark = pytest.mark.live

REPOSITORY, REVISION = "onnxmodelzoo/linear-1", "0123456789abcdef0123456789abcdef01234567"


class HubStandIn(ThreadingHTTPServer):
    """Serves the files of one repository at one revision, and keeps what was asked."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.asked = files, list[tuple[str, str]]()
        super().__init__(("127.0.0.1", 0), _Answer)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: HubStandIn

    def do_HEAD(self) -> None:  # the name that the server calls
        self._answer()

    def do_GET(self) -> None:
        self.wfile.write(self._answer())

    def _answer(self) -> bytes:
        self.server.asked.append((self.command, self.path))
        prefix = f"/{REPOSITORY}/resolve/"
        revision, _, name = self.path.removeprefix(prefix).partition("/")
        content = self.server.files.get(name)
        known = self.path.startswith(prefix) and revision in (REVISION, "main")
        if not known or content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound" if known else "RevisionNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return b""
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return content

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubStandIn]:
    """A hub that has one model, with its weights in a file beside it."""
    source = tmp_path / "source"
    source.mkdir()
    weights = np.arange(4096, dtype=np.float32).reshape(64, 64)
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "linear",
            [helper.make_tensor_value_info("x", 1, ["batch", 64])],
            [helper.make_tensor_value_info("y", 1, ["batch", 64])],
            [numpy_helper.from_array(weights, "w")],
        ),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    onnx.save(proto, source / "whole.onnx")
    onnx.save(
        proto,
        source / "linear.onnx",
        save_as_external_data=True,
        location="linear.data",
        size_threshold=0,
    )
    server = HubStandIn({path.name: path.read_bytes() for path in source.iterdir()})
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class Project:
    """A project whose catalogue names models of a hub."""

    def __init__(self, folder: Path, hub: HubStandIn) -> None:
        self.folder, self.hub = folder, hub
        (folder / "models").mkdir()

    def catalogue(self, **keys: str) -> None:
        """Write an entry ``linear``: the whole file, except for what is given."""
        entry = {
            "hub": REPOSITORY,
            "hub_file": "whole.onnx",
            "revision": REVISION,
            "sha256": hashlib.sha256(self.hub.files["whole.onnx"]).hexdigest(),
            **keys,
        }
        lines = [
            f"{key} = {text if text[0] == '[' else json.dumps(text)}" for key, text in entry.items()
        ]
        path = self.folder / "models" / "catalogue.toml"
        path.write_text("\n".join(["[linear]", *lines]), encoding="utf-8")

    def inspect(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run ``ortbench models inspect linear`` as a user does."""
        return subprocess.run(
            [sys.executable, "-m", "pytest_ortbench.cli", "models", "inspect", "linear"],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "HF_ENDPOINT": self.hub.address,
                "HF_HOME": str(self.folder / "hub-cache"),
                "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                "HF_HUB_ETAG_TIMEOUT": "5",
                "ORTBENCH_CACHE": str(self.folder / "cache"),
                "NO_PROXY": "127.0.0.1",
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


@pytest.fixture
def project(tmp_path: Path, hub: HubStandIn) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, hub)


def test_a_model_is_fetched_once_and_used_offline_from_then_on(project: Project) -> None:
    project.catalogue()
    first = project.inspect()
    assert first.returncode == 0, first.stderr
    path = f"/{REPOSITORY}/resolve/{REVISION}/whole.onnx"
    assert project.hub.asked.count(("GET", path)) == 1
    project.hub.asked.clear()
    for offline in ({}, {"HF_HUB_OFFLINE": "1"}):
        later = project.inspect(**offline)
        assert (later.returncode, later.stdout) == (0, first.stdout), later.stderr
    assert project.hub.asked == []


def test_weights_beside_the_model_come_along(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "source"
    digest = file_digest(source / "linear.onnx", [("linear.data", source / "linear.data")])
    project.catalogue(hub_file="linear.onnx", hub_extra='["linear.data"]', sha256=digest)
    done = project.inspect()
    assert done.returncode == 0, done.stderr
    assert digest[:12] in done.stdout


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"sha256": "1" * 64}, "1" * 16),
        ({"hub_file": "absent.onnx"}, "absent.onnx"),
        ({"revision": "f" * 40}, "f" * 40),
        ({"hub": "a/b/c"}, "hub = 'OWNER/NAME'"),
        ({"hub_file": "../../secret.onnx"}, "hub_file in "),
    ],
)
def test_what_can_not_be_had_is_one_message(
    project: Project, keys: dict[str, str], named: str
) -> None:
    project.catalogue(**keys)
    done = project.inspect()
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
