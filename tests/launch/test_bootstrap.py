"""What a worker is started with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.launch import bootstrap
from pytest_ortbench.schema.question_table import QUESTIONS
from pytest_ortbench.worker.importer import SourceImporter


def test_current_keeps_its_environment_and_made_runtimes_are_isolated() -> None:
    assert bootstrap.command(Runtime(), "t")[:2] == [sys.executable, "-c"]
    made = Runtime(label="made", command=("/venv/bin/python",), isolated=True)
    assert bootstrap.command(made, "t")[:3] == ["/venv/bin/python", "-I", "-c"]
    assert bootstrap.command(made, "t")[-1] == "t"


def sent(*, compiled: bool) -> tuple[dict[str, object], dict[str, tuple[str, str]]]:
    """The first line for a worker, and source and code of each module."""
    first, *lines = map(json.loads, bootstrap.module_lines(compiled=compiled).splitlines())
    return first, {name: (source, code) for name, source, code in lines}


def test_no_line_is_so_large_that_freeing_it_changes_how_memory_is_kept() -> None:
    lines = bootstrap.module_lines(compiled=True).splitlines()
    assert max(map(len, lines)) < 128 * 1024  # where glibc's allocator begins to map pieces


def test_the_worker_gets_its_own_sources_and_no_more() -> None:
    first, modules = sent(compiled=False)
    assert first == {"modules": len(modules), "python": []}
    assert {code for _, code in modules.values()} == {""}
    sources = {name: source for name, (source, _) in modules.items()}
    root = Path(bootstrap.__file__).parents[1]
    assert sources["pytest_ortbench.worker.main"] == (root / "worker/main.py").read_text()
    assert {"pytest_ortbench", "pytest_ortbench.core", "pytest_ortbench.worker"} <= set(sources)
    handlers = {handler.partition(":")[0] for handler in QUESTIONS.values()}
    assert handlers <= set(sources)
    tops = {name.split(".")[1] for name in sources if "." in name}
    assert tops == {
        "convert",
        "core",
        "engines",
        "passes",
        "schema",
        "selfcheck",
        "serving",
        "worker",
        "yardstick",
    }
    parts = {name.split(".")[3] for name in sources if name.count(".") > 2 and ".passes." in name}
    assert parts == {"declaration", "facts", "questions", "worker"}
    schema = {name for name in sources if name.startswith("pytest_ortbench.schema.")}
    conversation = ("wire", "protocol", "question", "question_table")
    questions = {name.partition(":")[0] for name in QUESTIONS}
    assert questions <= set(sources)
    assert schema == {f"pytest_ortbench.schema.{name}" for name in conversation} | {
        name for name in questions if name.startswith("pytest_ortbench.schema.")
    }


def test_what_is_compiled_is_what_the_worker_would_have_compiled() -> None:
    first, modules = sent(compiled=True)
    sources = {name: source for name, (source, _) in modules.items()}
    assert sources == {name: source for name, (source, _) in sent(compiled=False)[1].items()}
    codes = {name: code for name, (_, code) in modules.items()}
    plain = SourceImporter(sources)
    ready = SourceImporter(dict.fromkeys(sources, ""), first["python"], codes)
    for name in sources:
        one, other = plain.get_code(name), ready.get_code(name)
        assert (one, one.co_filename) == (other, other.co_filename)
