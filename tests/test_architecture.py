"""Who may import whom, and what a module may do: the rules of ``docs/architecture.md``.

Sources are parsed, not imported, so that an import inside a function counts like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from pytest_ortbench.schema.question_table import questions
from tests.branches_on_texts import Branch, Names, branches_on_texts
from tests.foreign_texts import FUNCTIONS, WHOLE_MODULES
from tests.parsed import nodes_of, product, tree_of

#: Layer of each room, by the start of a module's path; the longest one that fits counts. Rooms of
#: one layer do not import each other. Modules in no room (the front ends) lie above them all.
LAYERS = {
    "core/": 0,
    "schema/": 1,
    "worker/": 2,
    "launch/": 2,
    "models/": 2,
    "runtimes/": 3,
    "analysis/": 3,
    "convert/variants.py": 4,
    "planning/": 4,
    "gate/numbers/": 4,
    "fleet/numbers/": 4,
    "fleet/procurement/": 5,
    "store/": 5,
    "yardstick/": 3,
    "yardstick/measuring/": 5,
    "report/": 5,
    "gate/report/": 6,
    "fleet/report/": 6,
    "execution/": 6,
    "serving/": 6,
    "fleet/hosts/": 7,
    "gate/measuring/": 7,
    "selfcheck/": 7,
    "report/ci/": 7,
    "report/html/": 7,
    "session.py": 8,
}
#: Parts of one room that lie in several folders.
SAME_ROOM = {
    "convert/": "worker/",
    "selfcheck/facts": "core/",
    "selfcheck/questions": "schema/",
    "selfcheck/worker/": "worker/",
    "yardstick/worker/": "worker/",
    "serving/fields": "worker/",
    "serving/json_body": "worker/",
    "serving/protocol": "worker/",
    "serving/tensor_values": "worker/",
}
#: Rooms of the parts of a pass, ``passes/NAME/PART``, and of an engine, ``engines/NAME/PART``: each
#: is a part of the room that it serves. What all share, ``passes/*.py``, belongs to ``core``.
PARTS_OF_PASSES = {
    "__init__": "core/",
    "declaration": "core/",
    "facts": "core/",
    "options": "planning/",
    "checks": "schema/",
    "questions": "schema/",
    "worker": "worker/",
    "export": "worker/",
    "numbers": "analysis/",
    "planning": "planning/",
    "report": "report/",
    "figures": "report/",
    "selfcheck": "selfcheck/",
    "fleet": "fleet/numbers/",
    "run": "execution/",
    "fixture": "",
    "command": "",
    "bisect": "",
}
FRONT = 9

#: What only a session makes for the front ends, so that it is closed with it.
OF_A_SESSION = ("Execution", "Planner", "ProcessLauncher", "Variants")

#: Third-party packages that only some modules may import, by the start of their path.
RESTRICTED = {
    "onnxruntime": ("worker/", "convert/"),
    "pynvml": ("worker/",),
    "mlperf_loadgen": ("worker/",),
    # Engines that take a graph and no file.
    "onnx": ("models/", "convert/", "engines/iree/worker", "engines/jax/worker"),
    "matplotlib": (
        "report/figures",
        "fleet/report/figures",
        "fleet/report/procurement_figures",
        "fleet/report/procurement_page",
    ),
}
#: What only the front ends may know.
OF_PYTEST = ("pytest", "_pytest", "pluggy", "pytest_benchmark", "xdist")

#: Modules that run inside the measured interpreter, which has nothing of ours installed.
SHIPPED_TO_WORKERS = (
    "core/",
    "schema/wire.py",
    "schema/protocol.py",
    "schema/question.py",
    "schema/question_table.py",
    *{
        name.partition(":")[0].replace("pytest_ortbench.", "", 1).replace(".", "/") + ".py"
        for name in questions()
    },
    "worker/",
    "convert/",
    "yardstick/worker/",
    "selfcheck/__init__.py",
    "selfcheck/facts.py",
    "selfcheck/worker/",
    "serving/__init__.py",
    "serving/fields.py",
    "serving/json_body.py",
    "serving/protocol.py",
    "serving/tensor_values.py",
)
#: Parts of passes that do.
PARTS_IN_WORKERS = ("__init__", "declaration", "facts", "questions", "worker", "export")
#: Modules in a folder of theirs that run on the host all the same.
ON_THE_HOST = ("convert/variants.py",)

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}
LONGEST_MODULE = 500


@dataclass(frozen=True)
class Import:
    """One imported module.

    Attributes:
        name: Its full dotted name.
        line: Where.
        at_import: Whether it happens when the module itself is imported.
    """

    name: str
    line: int
    at_import: bool


@dataclass(frozen=True)
class Source:
    """One module of the package."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return tree_of(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        return nodes_of(self.text)

    @property
    def room(self) -> str:
        """``core/`` for ``core/case.py``, empty for a front end."""
        return room_of(self.path)

    @property
    def layer(self) -> int:
        return LAYERS.get(self.room, FRONT)

    @property
    def is_shipped(self) -> bool:
        """Whether it is sent to workers."""
        return is_shipped(self.path)


def part_of_pass(path: str) -> str:
    """Return which part of a pass or an engine a module is, empty if it is of neither."""
    parts = path.removesuffix("/").removesuffix(".py").split("/")
    if parts[0] not in ("passes", "engines") or len(parts) < 2:
        return ""
    return parts[2] if len(parts) > 2 else "__init__"


def is_shipped(path: str) -> bool:
    """Whether a module, by its path from the package, is sent to workers."""
    if path.startswith(("passes", "engines")):
        return part_of_pass(path) in PARTS_IN_WORKERS or path == "passes.py"
    return path.startswith(SHIPPED_TO_WORKERS) and path not in ON_THE_HOST


def room_of(path: str) -> str:
    """Return the room of a module by its path from the package, empty for a front end."""
    if path.startswith(("passes", "engines")):
        return PARTS_OF_PASSES.get(part_of_pass(path), "core/")
    rooms = [room for room in (*LAYERS, *SAME_ROOM) if path.startswith(room)]
    room = max(rooms, key=len, default="")
    return SAME_ROOM.get(room, room)


def sources() -> list[Source]:
    """Return every module of the package."""
    return [Source(path, text) for path, text in product().items()]


@cache
def imports_of(source: Source) -> list[Import]:
    """Return every import, relative ones resolved, those under ``TYPE_CHECKING`` among them."""
    return list(_imports_of(source))


def _imports_of(source: Source) -> Iterator[Import]:
    for node, at_import in _walk(source.tree, at_import=True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_import)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ["pytest_ortbench", *source.path.removesuffix(".py").split("/")]
                base = ".".join([*parts[: -node.level], *([base] if base else [])])
            if base == "pytest_ortbench":
                for alias in node.names:
                    yield Import(f"{base}.{alias.name}", node.lineno, at_import)
            else:
                yield Import(base, node.lineno, at_import)


def _walk(node: ast.AST, *, at_import: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        deferred = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for part in child.body:
                yield part, False
                yield from _walk(part, at_import=False)
            for part in child.orelse:
                yield part, at_import
                yield from _walk(part, at_import=at_import)
            continue
        yield child, at_import
        yield from _walk(child, at_import=at_import and not deferred)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _last_name(node: ast.AST) -> str:
    """Return ``exit`` for ``sys.exit``, and nothing for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _room_of_import(name: str) -> str | None:
    """Return the room of an imported module, ``None`` for what is not ours or a constant."""
    top, _, rest = name.partition(".")
    if top != "pytest_ortbench" or rest in ("", "__version__"):
        return None
    # A package counts as what lies in it, a name of a module as the module.
    path = rest.replace(".", "/")
    return room_of(path + "/") or room_of(path + ".py")


# -- rules: each gives one line a violation --------------------------------------------------------


def imports_upwards(source: Source) -> Iterator[str]:
    for found in imports_of(source):
        room = _room_of_import(found.name)
        if room is None or room == source.room:
            continue
        if LAYERS.get(room, FRONT) >= source.layer:
            yield f"{source.path}:{found.line} (layer {source.layer}) imports {found.name}"


def imports_restricted(source: Source) -> Iterator[str]:
    for found in imports_of(source):
        top = found.name.partition(".")[0]
        allowed = RESTRICTED.get(top)
        place = "report/figures" if part_of_pass(source.path) == "figures" else source.path
        if allowed and not place.startswith(allowed) and source.room not in allowed:
            yield f"{source.path}:{found.line} imports {found.name}"
        if top in OF_PYTEST and source.layer < FRONT:
            yield f"{source.path}:{found.line} knows of {found.name}"


def needs_more_than_the_standard_library(source: Source) -> Iterator[str]:
    if not source.is_shipped:
        return
    for found in imports_of(source):
        top = found.name.partition(".")[0]
        if top == "pytest_ortbench":
            module = found.name.removeprefix("pytest_ortbench.").replace(".", "/") + ".py"
            folders = ("core.py", "worker.py", "convert.py")
            if not is_shipped(module) and not module.startswith(folders):
                yield f"{source.path}:{found.line} imports {found.name}, which no worker has"
        elif found.at_import and top not in sys.stdlib_module_names:
            yield f"{source.path}:{found.line} imports {found.name} when it is imported"


def is_no_python_3_10(source: Source) -> Iterator[str]:
    if source.is_shipped:
        try:
            ast.parse(source.text, feature_version=(3, 10))
        except SyntaxError as error:
            yield f"{source.path}:{error.lineno} {error.msg}"


def measures_without_a_session(source: Source) -> Iterator[str]:
    if source.layer < FRONT:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call):
            name = _last_name(node.func)
            if name in OF_A_SESSION:
                yield f"{source.path}:{node.lineno} makes a {name}"


def prints_or_exits(source: Source) -> Iterator[str]:
    if source.layer == FRONT:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and _last_name(node.func) in ("print", "exit", "quit"):
            called = ast.unparse(node.func)
            if called in ("print", "exit", "quit", "sys.exit"):
                yield f"{source.path}:{node.lineno} calls {called}"
        if isinstance(node, ast.Raise) and node.exc and "SystemExit" in ast.unparse(node.exc):
            yield f"{source.path}:{node.lineno} raises SystemExit"


def reads_the_environment_when_imported(source: Source) -> Iterator[str]:
    for node, at_import in _walk(source.tree, at_import=True):
        if isinstance(node, ast.Attribute | ast.Name) and at_import:
            if _last_name(node) not in ("environ", "getenv"):
                continue
            text = ast.unparse(node)
            if text in ("os.environ", "os.getenv", "environ", "getenv"):
                yield f"{source.path}:{node.lineno} reads {text}"


def has_a_name_that_says_nothing(source: Source) -> Iterator[str]:
    for part in source.path.removesuffix(".py").split("/"):
        if part.strip("_") in FORBIDDEN_NAMES:
            yield source.path


def is_too_long(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > LONGEST_MODULE:
        yield f"{source.path} has {lines} lines, more than {LONGEST_MODULE}"


def says_nothing_or_is_unfinished(source: Source) -> Iterator[str]:
    if not ast.get_docstring(source.tree):
        yield f"{source.path} has no docstring"
    for number, line in enumerate(source.text.splitlines(), 1):
        if any(word in line for word in ("TODO", "FIXME", "NotImplementedError")):
            yield f"{source.path}:{number} {line.strip()}"


RULES = (
    imports_upwards,
    imports_restricted,
    needs_more_than_the_standard_library,
    is_no_python_3_10,
    measures_without_a_session,
    prints_or_exits,
    reads_the_environment_when_imported,
    has_a_name_that_says_nothing,
    is_too_long,
    says_nothing_or_is_unfinished,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_module(rule: object) -> None:
    assert callable(rule)
    violations = [violation for source in sources() for violation in rule(source)]
    assert violations == []


def test_all_modules_were_looked_at() -> None:
    rooms = {source.room for source in sources()}
    assert set(LAYERS) <= rooms
    assert {source.path for source in sources()} >= {
        "plugin/__init__.py",
        "core/case.py",
        "suites/__init__.py",
    }


@pytest.mark.parametrize(
    ("rule", "path", "text", "violation"),
    [
        (
            imports_upwards,
            "core/a.py",
            "import pytest_ortbench.planning.axes",
            "core/a.py:1 (layer 0)",
        ),
        (imports_upwards, "worker/a.py", "from pytest_ortbench.launch import b", "worker/a.py:1"),
        (imports_upwards, "worker/a.py", "from pytest_ortbench import models", "worker/a.py:1"),
        (imports_upwards, "core/a.py", "from ..planning import axes", "core/a.py:1"),
        (
            imports_upwards,
            "execution/a.py",
            "def f():\n from pytest_ortbench.plugin.bench import B",
            ":2",
        ),
        (imports_upwards, "launch/a.py", "from pytest_ortbench.analysis import b", "launch/a.py:1"),
        (imports_restricted, "launch/a.py", "def f():\n  import onnxruntime as o", ":2 imports"),
        (imports_restricted, "report/table.py", "import matplotlib.pyplot", "imports matplotlib"),
        (imports_restricted, "store/a.py", "import pytest", "knows of pytest"),
        (needs_more_than_the_standard_library, "core/a.py", "import numpy", "imports numpy when"),
        (
            needs_more_than_the_standard_library,
            "worker/a.py",
            "try:\n import numpy\nfinally: 1",
            ":2",
        ),
        (
            needs_more_than_the_standard_library,
            "worker/a.py",
            "def f():\n from pytest_ortbench.schema.document import x",
            "which no worker has",
        ),
        (is_no_python_3_10, "core/a.py", "try: 1\nexcept* ValueError: 2", "core/a.py:"),
        (measures_without_a_session, "cli/a.py", "a.Planner(b)", "cli/a.py:1 makes a Planner"),
        (measures_without_a_session, "plugin/a.py", "def f(): Execution()", "makes a Execution"),
        (prints_or_exits, "planning/a.py", "def f(): print(1)", "planning/a.py:1 calls print"),
        (prints_or_exits, "planning/a.py", "raise SystemExit(2)", "raises SystemExit"),
        (
            reads_the_environment_when_imported,
            "plugin/bench.py",
            "A = os.environ['X']",
            "os.environ",
        ),
        (has_a_name_that_says_nothing, "core/utils.py", "", "core/utils.py"),
        (is_too_long, "core/a.py", "\n" * 501, "has 501 lines"),
        (says_nothing_or_is_unfinished, "core/a.py", "", "no docstring"),
        (says_nothing_or_is_unfinished, "core/a.py", "'''A.'''\n# FIXME", "core/a.py:2"),
    ],
)
def test_a_violation_is_found(rule: object, path: str, text: str, violation: str) -> None:
    assert callable(rule)
    found = list(rule(Source(path, text)))
    assert len(found) == 1
    assert violation in found[0]


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (imports_upwards, "planning/a.py", "from pytest_ortbench.models.graph import read_model"),
        (imports_upwards, "planning/a.py", "from pytest_ortbench.planning.axes import x"),
        (imports_upwards, "store/a.py", "from pytest_ortbench import __version__"),
        (imports_upwards, "plugin/__init__.py", "from pytest_ortbench.plugin.bench import Bench"),
        (imports_restricted, "report/figures/a.py", "import matplotlib"),
        (imports_restricted, "planning/a.py", "import onnxruntime_extensions"),
        (needs_more_than_the_standard_library, "worker/a.py", "def f():\n import numpy"),
        (
            needs_more_than_the_standard_library,
            "worker/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n import numpy",
        ),
        (needs_more_than_the_standard_library, "schema/document.py", "import msgspec"),
        (imports_upwards, "cli/a.py", "from pytest_ortbench.session import Session"),
        (
            imports_upwards,
            "session.py",
            "from pytest_ortbench.execution.execution import Execution",
        ),
        (measures_without_a_session, "session.py", "Execution()"),
        (prints_or_exits, "cli.py", "print(1)"),
        (reads_the_environment_when_imported, "planning/a.py", "def f(): return os.environ"),
    ],
)
def test_what_is_allowed_is_not_a_violation(rule: object, path: str, text: str) -> None:
    assert callable(rule)
    assert list(rule(Source(path, text))) == []


# -- fields decide, sentences explain --------------------------------------------------------------


@cache
def names() -> Names:
    """Return what the names of the package stand for."""
    learned = Names()
    for source in sources():
        learned.learn(source.tree.body, source.nodes)
    return learned


@cache
def all_branches(source: Source) -> list[Branch]:
    """Return the branches of a module that look at a text."""
    return branches_on_texts(source.path, source.tree, names())


def own_texts(source: Source) -> list[Branch]:
    """Branches on texts that are not those of others."""
    if source.path in WHOLE_MODULES or source.path.startswith("suites/"):
        return []
    _, functions = FUNCTIONS.get(source.path, ("", frozenset()))
    return [branch for branch in all_branches(source) if branch.function not in functions]


def test_no_branch_looks_at_a_text_of_our_own() -> None:
    """A field or a declared word decides; a text of others is named in tests/foreign_texts.py."""
    assert [branch for source in sources() for branch in own_texts(source)] == []


def test_modules_that_are_allowed_to_look_at_texts_do() -> None:
    looking = {source.path for source in sources() if all_branches(source)}
    assert sorted({*WHOLE_MODULES, *FUNCTIONS} - looking) == []


@pytest.mark.parametrize(
    "code",
    [
        'if "vanished" in outcome: 1',
        'if "was removed" not in entry.lower(): 1',
        "if one.reason == GONE: 1",
        'if one.reason != "interrupted": 1',
        'words = one.reason\n    if words == "gone": 1',
        'if told == "interrupted before it was over": 1',
        'if told in ("the file is gone", "the worker died"): 1',
        'if told.startswith("Did"): 1',
        'if one.missing.get("p50", "").endswith("asked for"): 1',
        'if re.search("gone", told): 1',
        "if GONE.fullmatch(told): 1",
        'match told:\n        case "it is gone": 1',
        'match one.hint:\n        case "gone": 1',
        'return {"it is gone": 1}[one.message]',
        "return KINDS.get(one.message)",
        'if told.find("gone") >= 0: 1',
        'if told.count("is gone"): 1',
        'if any(words in told for words in ("it is gone", "left out")): 1',
        'for words in ["it is gone"]:\n        if words in told: 1',
    ],
)
def test_a_branch_on_a_text_is_found(code: str) -> None:
    text = f'"""A."""\nGONE = "gone"\n\ndef decide(one, told, outcome, entry):\n    {code}'
    [branch] = own_texts(Source("gate/numbers/stored.py", text))
    assert branch.function == "decide"


@pytest.mark.parametrize(
    "code",
    [
        'if one.verdict == "slower": 1',
        'if one.verdict == "less accurate": 1',
        "if one.interrupted: 1",
        "if not one.reason: 1",
        'if "soak" in wanted: 1',
        'if "soak" in {*wanted}: 1',
        'if one.name in ("soak", "load"): 1',
        'if wanted.count("soak"): 1',
        'if all(name in one for name in ("soak", "load")): 1',
        'match one.status:\n        case "crash": 1',
    ],
)
def test_a_branch_on_a_field_or_a_word_is_none_on_a_text(code: str) -> None:
    text = f'"""A."""\n\ndef decide(one, wanted: list[str]):\n    {code}'
    assert own_texts(Source("gate/numbers/stored.py", text)) == []
