"""What a worker is started with."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.launch import bootstrap
from pytest_ortbench.schema.question_table import questions
from pytest_ortbench.worker.importer import SourceImporter
from tests.sent_modules import line_of, read_line


def test_current_keeps_its_environment_and_made_runtimes_are_isolated() -> None:
    assert bootstrap.command(Runtime(), "t")[:2] == [sys.executable, "-c"]
    made = Runtime(label="made", command=("/venv/bin/python",), isolated=True)
    assert bootstrap.command(made, "t")[:3] == ["/venv/bin/python", "-I", "-c"]
    assert bootstrap.command(made, "t")[-1] == "t"


def sent(*, compiled: bool) -> tuple[dict[str, object], dict[str, tuple[str, bytes]]]:
    """The first line for a worker, and source and code of each module."""
    first, *lines = bootstrap.module_lines(compiled=compiled).splitlines()
    modules = {name: (source, code) for name, source, code in map(read_line, lines)}
    told = json.loads(first)
    assert told["modules"] == list(modules)
    return told, modules


def lines_of(sources: dict[str, str], codes: dict[str, bytes]) -> dict[str, bytes]:
    """The lines of modules, by their names."""
    return {name: line_of(name, text, codes.get(name, b"")) for name, text in sources.items()}


@pytest.mark.live
def test_a_worker_that_opens_a_case_loads_no_pass_and_nothing_of_the_host_alone() -> None:
    program = (
        "import json, sys, pytest_ortbench.worker.main, pytest_ortbench.worker.standard\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('pytest_ortbench.')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, timeout=600
    )
    loaded = {name.removeprefix("pytest_ortbench.") for name in json.loads(done.stdout)}
    assert {name for name in loaded if name.startswith("passes.")} == {"passes.registry"}
    others = {"core.outcome", "core.metrics", "engines.seam", "worker.profiling", "worker.probe"}
    assert loaded & others == set()


def test_no_line_is_so_large_that_freeing_it_changes_how_memory_is_kept() -> None:
    lines = bootstrap.module_lines(compiled=True).splitlines()
    assert max(map(len, lines)) < 128 * 1024  # where glibc's allocator begins to map pieces


def test_the_worker_gets_its_own_sources_and_no_more() -> None:
    first, modules = sent(compiled=False)
    sources = {name: source for name, (source, _) in modules.items()}
    importer = sources["pytest_ortbench.worker.importer"]
    assert first == {"modules": list(modules), "python": [], "importer": importer}
    assert {code for _, code in modules.values()} == {b""}
    root = Path(bootstrap.__file__).parents[1]
    assert sources["pytest_ortbench.worker.main"] == (root / "worker/main.py").read_text()
    assert {"pytest_ortbench", "pytest_ortbench.core", "pytest_ortbench.worker"} <= set(sources)
    handlers = {handler.partition(":")[0] for handler in questions().values()}
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
    asked = {name.partition(":")[0] for name in questions()}
    assert asked <= set(sources)
    assert schema == {f"pytest_ortbench.schema.{name}" for name in conversation} | {
        name for name in asked if name.startswith("pytest_ortbench.schema.")
    }


def test_what_is_compiled_is_what_the_worker_would_have_compiled() -> None:
    first, modules = sent(compiled=True)
    sources = {name: source for name, (source, _) in modules.items()}
    assert sources == {name: source for name, (source, _) in sent(compiled=False)[1].items()}
    codes = {name: code for name, (_, code) in modules.items()}
    plain = SourceImporter(lines_of(sources, {}))
    ready = SourceImporter(lines_of(dict.fromkeys(sources, ""), codes), first["python"])
    for name in sources:
        one, other = plain.get_code(name), ready.get_code(name)
        assert (one, one.co_filename) == (other, other.co_filename)


def test_a_worker_gets_what_its_modules_import() -> None:
    """Nothing else of the package is there; an import inside a function fails where it runs."""
    _, modules = sent(compiled=False)
    lacking = {
        (name, wanted)
        for name, (source, _) in modules.items()
        for wanted in _imported(ast.parse(source))
        if wanted not in modules
    }
    assert lacking == set()


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of the package that are imported, but for checkers of types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest_ortbench"):
            yield str(node.module)
        yield from _imported(node)
