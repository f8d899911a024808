"""What a worker is started with."""

from __future__ import annotations

import base64
import importlib.util
import json
import marshal
import sys
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.launch import bootstrap


def test_current_keeps_its_environment_and_made_runtimes_are_isolated() -> None:
    assert bootstrap.command(Runtime(), "t")[:2] == [sys.executable, "-c"]
    made = Runtime(label="made", command=("/venv/bin/python",), isolated=True)
    assert bootstrap.command(made, "t")[:3] == ["/venv/bin/python", "-I", "-c"]
    assert bootstrap.command(made, "t")[-1] == "t"


HERE = Runtime()
ELSEWHERE = Runtime(
    label="far", command=("ssh", "far", "python3"), through_shell=True, shares_files=False
)


def test_the_worker_gets_its_own_sources_and_no_more() -> None:
    line = bootstrap.modules_line(ELSEWHERE)
    assert line.count(b"\n") == 1
    sent = json.loads(line)
    assert set(sent) == {"sources"}
    sources = sent["sources"]
    root = Path(bootstrap.__file__).parents[1]
    assert sources["pytest_ortbench.worker.main"] == (root / "worker/main.py").read_text()
    assert {"pytest_ortbench", "pytest_ortbench.core", "pytest_ortbench.worker"} <= set(sources)
    tops = {name.split(".")[1] for name in sources if "." in name}
    assert tops == {"core", "schema", "worker"}
    schema = {name for name in sources if name.startswith("pytest_ortbench.schema.")}
    names = ("wire", "protocol", "pass_questions", "model_questions")
    assert schema == {f"pytest_ortbench.schema.{name}" for name in names}


def test_on_this_machine_it_gets_them_compiled_too() -> None:
    sent = json.loads(bootstrap.modules_line(HERE))
    assert sent["sources"] == json.loads(bootstrap.modules_line(ELSEWHERE))["sources"]
    assert bytes.fromhex(sent["magic"]) == importlib.util.MAGIC_NUMBER
    assert set(sent["codes"]) == set(sent["sources"])
    code = marshal.loads(base64.b64decode(sent["codes"]["pytest_ortbench.worker.main"]))
    assert code.co_filename == str(Path(bootstrap.__file__).parents[1] / "worker" / "main.py")
    assert "serve" in code.co_names
