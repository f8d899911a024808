"""A throw-away pass, added by the recipe in CONTRIBUTING.md: four lines outside of its folder.

It counts garbage collections. A copy of the product has it, and everything that iterates over
passes has it too.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.product_copy import copy_product, told_beside

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]

#: Its folder.
_FOLDER = {
    "__init__.py": """\"\"\"How often Python collects garbage between inferences.\"\"\"
""",
    "declaration.py": """\"\"\"How often Python collects garbage between inferences.\"\"\"

from pytest_ortbench.core.metric import metric
from pytest_ortbench.passes.pass_object import Pass, Phase

PASS = Pass(
    name="garbage",
    result_field="garbage",
    measure=".run:measure",
    lacking=".facts:Garbage",
    questions=((".questions:CountCollections", ".worker:count"),),
    phase=Phase(name="garbage", doing="counting collections"),
    relations=".checks:RELATIONS",
    view="memory",
    add_numbers=".numbers:add_collections",
    metrics=(
        metric("collections", "collections", "1", "lower", "Collections (--ort-garbage)."),
    ),
    tables=".report:garbage_tables",
)
""",
    "facts.py": """\"\"\"Garbage collections while a session ran. Raw facts only.\"\"\"

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    \"\"\"Collections, and the inferences meanwhile.\"\"\"

    collections: int = 0
    inferences: int = 0
    reason: str = ""
    interrupted: bool = False
""",
    "options.py": """\"\"\"Options of the pass.\"\"\"

from pytest_ortbench.core.option import Keyword, option


class GarbageOptions:
    \"\"\"What the user asks for.\"\"\"

    garbage: tuple[int, ...] = option(
        (),
        flag="--ort-garbage",
        kind="list",
        metavar="N",
        help="count garbage collections over so many inferences",
        reader="pytest_ortbench.plugin.option_readers:read_whole_numbers",
        to="sampling.garbage",
        keyword=Keyword(help="inferences between which garbage is counted", takes="numbers"),
        asks_for="garbage",
    )


OPTIONS = GarbageOptions
""",
    "questions.py": """\"\"\"What the host asks.\"\"\"

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.garbage.facts import Garbage
from pytest_ortbench.schema.question import CaseQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class CountCollections(CaseQuestion[Garbage]):
    \"\"\"Run so many inferences.\"\"\"

    inferences: int
""",
    "worker.py": """\"\"\"What the worker answers.\"\"\"

from __future__ import annotations

import gc
from array import array
from typing import TYPE_CHECKING

from pytest_ortbench.passes.garbage.facts import Garbage
from pytest_ortbench.passes.garbage.questions import CountCollections

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase


def count(question: CountCollections, measured: MeasuredCase) -> Garbage:
    measured.enter("garbage")
    loop, duration = measured.live_loop(), array("q", bytes(8 * measured.case.callers))
    before = _collections()
    for _ in range(question.inferences):
        loop(duration)
        gc.collect()
    return Garbage(collections=_collections() - before, inferences=question.inferences)


def _collections() -> int:
    return sum(entry["collections"] for entry in gc.get_stats())
""",
    "checks.py": """\"\"\"What collections must agree on.\"\"\"

from pytest_ortbench.passes.garbage.facts import Garbage


def _garbage(garbage):
    if garbage.collections and not garbage.inferences:
        yield "collections", "must be 0: there was no inference"


RELATIONS = {Garbage: _garbage}
""",
    "numbers.py": """\"\"\"The metric.\"\"\"

from pytest_ortbench.passes.garbage.declaration import PASS


def add_collections(collector, result):
    garbage = result.garbage
    if garbage is None or garbage.reason:
        why = "no garbage was counted" if garbage is None else garbage.reason
        collector.reject(PASS.metric_names, why)
    else:
        collector.add("collections", garbage.collections, samples=garbage.inferences)
""",
    "run.py": """\"\"\"The pass on the host.\"\"\"

import time
from contextlib import closing

from pytest_ortbench.passes.garbage.questions import CountCollections


def measure(result, means):
    deadline = time.monotonic() + result.case.sampling.timeout_s
    with closing(means.launcher.open(result.case, worker=0, deadline=deadline)) as worker:
        return worker.ask(CountCollections(inferences=sum(result.case.sampling.garbage)))
""",
    "report.py": """\"\"\"The table.\"\"\"

from pytest_ortbench.report.pass_table import PassTable


def garbage_tables(shown):
    return tuple(
        PassTable(
            title=f"garbage of {shown.name_of(result.case)}",
            headings=("inferences", "collections"),
            rows=((str(result.garbage.inferences), str(result.garbage.collections)),),
        )
        for result in shown.run.cases
        if result.garbage is not None
    )
""",
}

#: What is added elsewhere, by file: the line that it goes in front of, and the lines.
_ELSEWHERE = {
    "passes/registry.py": [('    "task",\n', '    "garbage",\n')],
    "core/outcome.py": [
        (
            "from pytest_ortbench.passes.load.facts import Load\n",
            "from pytest_ortbench.passes.garbage.facts import Garbage\n",
        ),
        ("    soak: Soak | None = None\n", "    garbage: Garbage | None = None\n"),
    ],
    "core/case.py": [("    loads: tuple[str, ...] = ()\n", "    garbage: tuple[int, ...] = ()\n")],
}

_TEST = """
import pytest

def test_by_the_option(ortbench):
    assert ortbench.memory().collections >= 2

@pytest.mark.ortbench(garbage=3, limits=["collections >= 3"])
def test_by_the_marker(ortbench):
    pass
"""

_SCRIPT = """
import contextlib, io, json, sys

import pytest

sys.path.insert(0, "docs")
import generate

from pytest_ortbench.analysis.rows import COLUMNS
from pytest_ortbench.core.outcome import PHASES
from pytest_ortbench.schema.json_schema import json_schema

PLUGIN = ["-p", "pytest_ortbench.plugin"]

QUICK = ["test_garbage.py", "--ort-models=net.onnx", "--ort-time=0.06", "--ort-workers=1",
         "--ort-no-results"]

def printed(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        status = pytest.main([*PLUGIN, "-p", "no:cacheprovider", *arguments])
    return [int(status), text.getvalue()]

print(json.dumps({
    "help": printed("--help"),
    "markers": printed("--markers"),
    "run": printed(*QUICK, "-k", "option", "--ort-garbage=2", "--ort-json=option.json"),
    "marked": printed(*QUICK, "-k", "marker", "--ort-json=marker.json"),
    "columns": COLUMNS,
    "phases": PHASES,
    "schema": json.dumps(json_schema()),
    "pages": {name: make() for name, make in generate.PAGES.items()},
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a copy of the product with the pass prints, measures and writes."""
    from tests.launch.cases import relu

    folder = tmp_path_factory.mktemp("copy")
    package = copy_product(folder, _ELSEWHERE)
    (package / "passes" / "garbage").mkdir()
    for name, text in _FOLDER.items():
        (package / "passes" / "garbage" / name).write_text(text, encoding="utf-8")
    (folder / "docs").mkdir()
    for name in ("generate.py", "message_index.py"):
        shutil.copy(ROOT / "docs" / name, folder / "docs")
    shutil.copytree(ROOT / "results", folder / "results")
    (folder / "tests" / "bare_files").mkdir(parents=True)
    shutil.copy(ROOT / "tests/bare_files/manifest.toml", folder / "tests" / "bare_files")
    (folder / "test_garbage.py").write_text(_TEST, encoding="utf-8")
    relu(folder / "net.onnx")
    facts = told_beside(folder, _SCRIPT)
    facts["documents"] = [
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("option.json", "marker.json")
    ]
    return facts


def test_at_most_four_files_outside_its_folder_are_touched() -> None:
    assert len(_ELSEWHERE) <= 4


def test_the_option_is_in_the_help_and_on_its_page(seen: dict[str, Any]) -> None:
    assert "--ort-garbage=N" in seen["help"][1]
    assert "`--ort-garbage=N`" in seen["pages"]["options.md"]


def test_the_marker_takes_the_keyword(seen: dict[str, Any]) -> None:
    assert "garbage=…" in seen["markers"][1]


def test_it_is_carried_out_for_the_option_and_for_the_marker(seen: dict[str, Any]) -> None:
    for status, text in (seen["run"], seen["marked"]):
        assert status == 0, text
    counted = [case["garbage"] for document in seen["documents"] for case in document["cases"]]
    assert [garbage["inferences"] for garbage in counted] == [2, 3]
    assert all(garbage["collections"] >= garbage["inferences"] for garbage in counted)


def test_the_terminal_shows_its_table(seen: dict[str, Any]) -> None:
    assert "garbage of net" in seen["run"][1]
    assert "inferences  collections" in seen["run"][1]


def test_schema_and_reference_know_it(seen: dict[str, Any]) -> None:
    assert "Garbage" in json.loads(seen["schema"])["$defs"]
    assert "`collections`" in seen["pages"]["metrics.md"]
    assert "Garbage" in seen["pages"]["document.md"]


def test_rows_and_phases_know_it(seen: dict[str, Any]) -> None:
    assert seen["columns"][-1] == "collections"
    assert seen["phases"]["garbage"] == "counting collections"
