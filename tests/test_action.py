"""The composite Action: what it declares, and that its steps do that, run as a runner runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}


def test_every_input_has_a_description_and_a_default() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for name, entry in ACTION["inputs"].items():
        assert entry["description"], name
        assert isinstance(entry["default"], str), name


def test_no_script_holds_an_expression() -> None:
    # What an expression gives would be run as a script: names of branches come from strangers.
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


class GitHub(BaseHTTPRequestHandler):
    """Comments of one pull request, as GitHub keeps them; pages hold two."""

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def _answer(self) -> None:
        server: Any = self.server
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Authorization"] == "Bearer secret"
        if self.path == "/graphql":
            return self._send(200, _page(server.comments, data["variables"]))
        if not server.may_write:
            return self._send(403, {"message": "Resource not accessible by integration"})
        if self.command == "PATCH":
            server.comments[int(self.path.rpartition("/")[2])]["body"] = data["body"]
        else:
            server.comments.append({"body": data["body"], "viewerDidAuthor": True})
        return self._send(200, {})

    def _send(self, status: int, answer: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


def _page(comments: list[dict[str, Any]], variables: dict[str, Any]) -> dict[str, Any]:
    first = int(variables["after"] or 0)
    nodes = [
        {**comment, "databaseId": number}
        for number, comment in enumerate(comments)
        if first <= number < first + 2
    ]
    more = first + 2 < len(comments)
    page = {"nodes": nodes, "pageInfo": {"hasNextPage": more, "endCursor": str(first + 2)}}
    return {"data": {"repository": {"pullRequest": {"comments": page}}}}


@pytest.fixture
def github() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), GitHub)
    server.comments = []
    server.may_write = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def comment(github: Any, summary: Path, key: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script of the step that comments."""
    address = f"http://127.0.0.1:{github.server_port}"
    event = summary.parent / "event.json"
    event.write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
    environment = {
        **os.environ,
        "GITHUB_TOKEN": "secret",
        "KEY": key,
        "PYTHON": sys.executable,
        "SUMMARY": str(summary),
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": address,
        "GITHUB_GRAPHQL_URL": f"{address}/graphql",
        "GITHUB_SERVER_URL": "https://example.com",
        "GITHUB_RUN_ID": "1",
    }
    return subprocess.run(
        ["bash", "-e", "-c", STEPS["Comment"]["run"]],
        env=environment, capture_output=True, text=True, encoding="utf-8", check=False, timeout=600,
    )  # fmt: skip


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    path = tmp_path / "summary.md"
    path.write_text("<!-- pytest-ortbench -->\n## verdict\n\ntext\n", encoding="utf-8")
    return path


@pytest.mark.live
def test_one_comment_is_updated_and_those_of_others_stay(github: Any, summary: Path) -> None:
    others = [
        {"body": f"<!-- pytest-ortbench -->\nmine {number}", "viewerDidAuthor": False}
        for number in range(3)
    ]
    github.comments += [dict(other) for other in others]
    for text in ("first", "second"):
        summary.write_text(f"<!-- pytest-ortbench -->\n## {text}\n", encoding="utf-8")
        assert comment(github, summary).returncode == 0
    assert github.comments[:3] == others
    assert [entry["body"].splitlines()[:2] for entry in github.comments[3:]] == [
        ["<!-- pytest-ortbench -->", "## second"]
    ]


@pytest.mark.live
def test_keys_have_comments_of_their_own(github: Any, summary: Path) -> None:
    for key in ("", "linux", "arm", "linux"):
        assert comment(github, summary, key).returncode == 0
    assert [entry["body"].splitlines()[0] for entry in github.comments] == [
        "<!-- pytest-ortbench -->",
        "<!-- pytest-ortbench linux -->",
        "<!-- pytest-ortbench arm -->",
    ]
    assert comment(github, summary, "a --> b").returncode == 2
    assert len(github.comments) == 3


@pytest.mark.live
def test_a_run_without_a_summary_and_a_very_long_one_are_told(github: Any, tmp_path: Path) -> None:
    assert comment(github, tmp_path / "nothing").returncode == 0
    (tmp_path / "long").write_text("marker\n" + "x" * 100_000, encoding="utf-8")
    assert comment(github, tmp_path / "long", "long").returncode == 0
    short, long = (entry["body"] for entry in github.comments)
    assert short.splitlines()[1].startswith("## ❌")
    assert len(long) == 65_536


@pytest.mark.live
def test_a_token_that_may_only_read_is_a_warning(github: Any, summary: Path) -> None:
    github.may_write = False
    done = comment(github, summary)
    assert (done.returncode, done.stderr.partition(" ")[0]) == (0, "::warning")
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.live
@pytest.mark.skipif(sys.platform == "win32", reason="a runner of Windows has a bash of its own")
def test_the_step_that_measures_hands_arguments_over(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import json, pathlib, pytest\n"
        "@pytest.hookimpl(trylast=True)\n"
        "def pytest_sessionfinish(session):\n"
        "    arguments = list(map(str, session.config.invocation_params.args))\n"
        "    pathlib.Path('arguments.json').write_text(json.dumps(arguments))\n"
        "    session.exitstatus = 7\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "ARGS": "-p no:cacheprovider '--ort-models=a b.onnx'",
        "AGAINST": "model:x y",
        "BASE": "0" * 40,
        "PYTHON": sys.executable,
        "SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", STEPS["Measure"]["run"]],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    written = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert written == {"summary": str(tmp_path / "summary.md"), "exit-code": "7"}
    assert json.loads((tmp_path / "arguments.json").read_text()) == [
        "-p",
        "no:cacheprovider",
        "--ort-models=a b.onnx",
        f"--ort-summary={tmp_path / 'summary.md'}",
        "--ort-against=model:x y",
    ]
