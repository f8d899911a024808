"""What users see of stored documents is what it was; and a worker gets all that it may be asked."""

from __future__ import annotations

import ast
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ortbench.launch import bootstrap
from tests.rendered_outputs import EXPECTED, RENDERINGS, expected, lay_out, rendered
from tests.sent_modules import line_of, read_line

#: Some outputs are those of a command in a process of its own.
pytestmark = pytest.mark.live

#: Lines of a difference that are shown.
_SHOWN = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all commands run in."""
    place = tmp_path_factory.mktemp("outputs")
    lay_out(place)
    return place


@pytest.mark.parametrize("name", RENDERINGS)
def test_an_output_is_what_it_was(name: str, folder: Path) -> None:
    before = expected(name).read_text(encoding="utf-8")
    after = rendered(name, folder)
    if after != before:
        lines = list(
            difflib.unified_diff(before.splitlines(), after.splitlines(), "was", "is", lineterm="")
        )
        rest = f"\n… {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
        pytest.fail(
            f"{name} changed. If that is meant: python -m tests.rendered_outputs {name}\n"
            + "\n".join(lines[:_SHOWN])
            + rest,
            pytrace=False,
        )


def test_every_expected_output_is_made_by_something() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == set(RENDERINGS)


# What travels to a worker.


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """Sources that a worker receives, by the dotted name of the module."""
    lines = bootstrap.module_lines(compiled=False).splitlines()[1:]
    return {name: source for name, source, _ in map(read_line, lines)}


def _names_of_ours(text: str) -> Iterator[str]:
    """Modules of ours that a source names: in imports that run, and in texts such as ``a.b:c``."""
    tree = ast.parse(text)
    only_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield str(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^(pytest_ortbench(?:\.\w+)+)(?::\w+)?$", node.value)


def test_whatever_a_worker_may_import_travels_with_it(sources: dict[str, str]) -> None:
    missing = {
        f"{module} needs {name}"
        for module, text in sources.items()
        # The package itself names what a user's annotations load, in pytest's process.
        if module != "pytest_ortbench"
        for name in _names_of_ours(text)
        if name.partition(".")[0] == "pytest_ortbench"
        # The last part may be something inside of a module.
        and name not in sources
        and name.rpartition(".")[0] not in sources
    }
    assert missing == set()


def test_an_interpreter_without_any_package_imports_all_that_travels(
    sources: dict[str, str],
) -> None:
    program = """
import importlib, json, sys
sent = json.load(sys.stdin)
space = {"__name__": "importer"}
exec(sent["importer"], space)
space["install"](sent["lines"])
for name in sent["lines"]:
    importlib.import_module(name)
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
foreign -= {"__main__"}
print(json.dumps(sorted(foreign)))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        input=json.dumps(
            {
                "lines": {name: line_of(name, text).decode() for name, text in sources.items()},
                "importer": sources["pytest_ortbench.worker.importer"],
            }
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["pytest_ortbench"]
