"""How much the structure costs, counted: each number may only become smaller.

Sources are parsed, never imported. Imports inside functions and under ``TYPE_CHECKING`` count, and
so do dotted names in texts (``"pytest_ortbench.worker.soak:answer"`` in a table), since each of
them is something that a reader has to follow. The shipped suites are left out: they are user code.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest
import tomlkit

from tests import parsed

ROOT = Path(__file__).parents[1]
PACKAGE = "pytest_ortbench"

#: What each measure is today, and what it is to become. Whoever makes one better lowers the first.
LIMITS: dict[str, tuple[int, int]] = {
    "circles of imports": (0, 0),
    "small modules that serve one neighbour": (10, 10),
    "class names used twice": (2, 5),
    "function names used twice": (11, 15),
    "imports inside functions": (111, 170),
    "lines of code and imports": (108_578, 40_500),
    "modules that name a question": (0, 1),
}

#: For each pass the words or whole names that nothing else uses, how many modules outside of its
#: folder name it today, and at most how many are to: registry, case result, settings, schema.
PASSES: dict[str, tuple[str, int, int]] = {
    "energy": ("energy", 7, 4),
    "load": ("Load|LoadSpec|LoadTest|PutUnderLoad", 3, 4),
    "processes": ("ProcessPoint|OneOfSeveral", 2, 4),
    "profile": ("OperatorProfile|OperatorTime|NodeTime", 1, 4),
    "soak": ("soak", 9, 4),
    "stages": ("stages", 7, 4),
    "startup": ("StartUps|StartTrial|ShapeStart|StartUpFor", 3, 4),
    "task": ("TaskAccuracy|task", 7, 4),
}

_SMALL = 80
_DOTTED = re.compile(rf"({PACKAGE}(?:\.\w+)+)(?::[\w.]+)?")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True)
class Reference:
    """A module that another one names.

    Attributes:
        target: Its dotted name.
        line: Where.
        inside: Whether an import statement inside a function does it.
    """

    target: str
    line: int
    inside: bool = False


@dataclass(frozen=True)
class Module:
    """A module of the package: its dotted name, its path from the root, and what it says."""

    name: str
    path: PurePosixPath
    text: str

    @property
    def tree(self) -> ast.Module:
        return parsed.tree_of(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        return parsed.nodes_of(self.text)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        """The nodes of all docstrings."""
        owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        return [
            node.body[0].value
            for node in self.nodes
            if isinstance(node, owners)
            and node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
            and isinstance(node.body[0].value.value, str)
        ]

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Names in the code: what it defines, imports and uses, and the words of its texts."""
        return frozenset(word for text in self._texts() for word in re.findall(r"\w+", text))

    @cached_property
    def words(self) -> frozenset[str]:
        """Words that the identifiers are made of, in lower case."""
        return frozenset(word.lower() for name in self.identifiers for word in _WORD.findall(name))

    def _texts(self) -> Iterator[str]:
        docs = set(map(id, self.docstrings))
        yield from self.path.with_suffix("").parts[1:]
        for node in self.nodes:
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.arg | ast.keyword):
                yield node.arg or ""
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.alias):
                yield f"{node.name} {node.asname or ''}"
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docs
            ):
                yield node.value


def parse(path: str, text: str) -> Module:
    """Return the module of a source at a path from the root."""
    parts = PurePosixPath(path).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, PurePosixPath(path), text)


class Package(dict[str, Module]):
    """Modules by dotted name."""

    @cached_property
    def references(self) -> dict[str, list[Reference]]:
        """What each module names of the others."""
        return {name: list(references(module, self)) for name, module in self.items()}


def package() -> Package:
    """Return the product."""
    modules = [
        parse(f"{PACKAGE}/{path}", text)
        for path, text in parsed.product().items()
        if "suites" not in path.split("/")
    ]
    return Package({module.name: module for module in modules})


# -- references ------------------------------------------------------------------------------------


def references(module: Module, known: Mapping[str, Module]) -> Iterator[Reference]:
    """Every other module that this one names, by an import or by a text that is a dotted name."""
    texts = set(map(id, module.docstrings))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

    def visit(node: ast.AST, inside: bool) -> Iterator[Reference]:
        for name in _named(node, module, known, texts):
            is_statement = isinstance(node, ast.Import | ast.ImportFrom)
            yield Reference(name, getattr(node, "lineno", 0), inside and is_statement)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside or isinstance(node, functions))

    for reference in visit(module.tree, False):
        if reference.target != module.name:
            yield reference


def _named(
    node: ast.AST, module: Module, known: Mapping[str, Module], docs: set[int]
) -> Iterator[str]:
    """Modules that a single node names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            upwards = module.name.split(".")
            upwards = upwards[: len(upwards) - node.level + module.is_package]
            base = ".".join([*upwards, *([base] if base else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            if inner in known or base in known:
                yield inner if inner in known else base
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
        match = _DOTTED.fullmatch(node.value)
        name = match[1] if match else ""
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name and name != PACKAGE:
            yield name


def circles(modules: Package) -> list[str]:
    """Groups of modules that reach each other, a line each."""
    follows = {
        name: {reference.target for reference in its_references}
        for name, its_references in modules.references.items()
    }
    reached = {name: _reachable(name, follows) for name in follows}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in follows
        if name in reached[name]
    }
    return sorted(" ".join(sorted(group)) for group in groups)


def _reachable(start: str, follows: Mapping[str, set[str]]) -> set[str]:
    """Modules that a module leads to by one reference or more."""
    reached: set[str] = set()
    ahead = list(follows[start])
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead.extend(follows[name])
    return reached


def users(modules: Package) -> dict[str, set[str]]:
    """Return who names each module."""
    by_target: dict[str, set[str]] = defaultdict(set)
    for name, its_references in modules.references.items():
        for reference in its_references:
            by_target[reference.target].add(name)
    return by_target


def small_for_one(modules: Package) -> list[str]:
    """Modules of few lines that only one module uses, which lies in the same folder."""
    rows = []
    for name, its_users in users(modules).items():
        module = modules[name]
        if module.is_package or len(its_users) != 1 or module.text.count("\n") >= _SMALL:
            continue
        (user,) = its_users
        if module.path.is_relative_to(f"{PACKAGE}/engines"):
            continue  # its declaration is all that names a part of an engine, and imports none
        if modules[user].path.parent == module.path.parent:
            rows.append(f"{name} for {user}")
    return sorted(rows)


def imports_inside(modules: Package) -> list[str]:
    """Statements inside functions that import modules of ours."""
    return sorted(
        {
            f"{modules[name].path}:{reference.line}"
            for name, its_references in modules.references.items()
            for reference in its_references
            if reference.inside
        }
    )


# -- names -----------------------------------------------------------------------------------------


def classes_twice(modules: Package) -> list[str]:
    """Names that several modules give a class."""
    return _twice(modules, lambda node: isinstance(node, ast.ClassDef))


def functions_twice(modules: Package) -> list[str]:
    """Names that several modules give a public function; ``command`` is the tool's convention."""
    return _twice(
        modules,
        lambda node: isinstance(node, ast.FunctionDef) and not node.name.startswith("_"),
        besides=("command", "main"),
    )


def _twice(
    modules: Package,
    counts: Callable[[ast.stmt], bool],
    besides: tuple[str, ...] = (),
) -> list[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for node in module.tree.body:
            if counts(node):
                places[getattr(node, "name", "")].append(module.name)
    return sorted(
        f"{name}: {', '.join(owners)}"
        for name, owners in places.items()
        if len(set(owners)) > 1 and name not in besides
    )


def names_any(module: Module, names: frozenset[str]) -> bool:
    """Whether the code of a module names one of some words (in lower case) or identifiers."""
    return bool(names & module.words or names & module.identifiers)


def outside_of_pass(modules: Package, name: str, names: str) -> list[str]:
    """Modules outside of the folder of a pass that name it."""
    wanted = frozenset(names.split("|"))
    return [
        str(module.path)
        for module in modules.values()
        if not module.path.is_relative_to(f"{PACKAGE}/passes/{name}")
        # What an engine is to run is its task, which is no pass.
        and not module.path.is_relative_to(f"{PACKAGE}/engines")
        # So is what Ansible carries out.
        and not (name == "task" and module.path.is_relative_to(f"{PACKAGE}/fleet/hosts"))
        and names_any(module, wanted)
    ]


def of_a_question(modules: Package) -> list[str]:
    """Modules outside of the pass's folder that name the question of a soak, or a method for it."""
    return [
        str(module.path)
        for module in modules.values()
        if not module.path.is_relative_to(f"{PACKAGE}/passes/soak")
        and (
            "SoakFor" in module.identifiers
            or any(
                isinstance(node, ast.FunctionDef) and node.name == "soak" for node in module.nodes
            )
        )
    ]


# -- lines -----------------------------------------------------------------------------------------


def lines_of_code(module: Module) -> int:
    """Lines that hold code: no docstring, no comment, not blank."""
    held = {
        number
        for number, line in enumerate(module.text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in module.nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            held.update(range(node.lineno, (node.end_lineno or 0) + 1))
    for node in module.docstrings:
        held.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


#: What each measure of :data:`LIMITS` counts: the places, a line each, or their number.
MEASURES: dict[str, Callable[[Package], list[str] | int]] = {
    "circles of imports": circles,
    "small modules that serve one neighbour": small_for_one,
    "class names used twice": classes_twice,
    "function names used twice": functions_twice,
    "imports inside functions": imports_inside,
    "lines of code and imports": lambda modules: sum(map(lines_of_code, modules.values())),
    "modules that name a question": of_a_question,
}


# -- what is held ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> Package:
    """The product."""
    return package()


def hold(what: str, counted: list[str] | int, limit: int, target: int) -> None:
    """Fail where more is counted than before."""
    number = counted if isinstance(counted, int) else len(counted)
    if number > limit:
        places = "" if isinstance(counted, int) else "\n".join(["", *counted])
        pytest.fail(
            f"{what}: {number}, and it was {limit} (to become {target}). Make it {limit} or "
            f"fewer; whoever makes it better lowers the number in this file.{places}",
            pytrace=False,
        )


@pytest.mark.parametrize("measure", MEASURES)
def test_the_structure_gets_no_worse(measure: str, modules: Package) -> None:
    limit, target = LIMITS[measure]
    hold(measure, MEASURES[measure](modules), limit, target)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_named_in_no_more_modules(name: str, modules: Package) -> None:
    names, limit, target = PASSES[name]
    places = outside_of_pass(modules, name, names)
    hold(f"modules that name the pass {name!r} outside of its folder", places, limit, target)


def test_every_dependency_is_imported(modules: Package) -> None:
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()
    names = {re.split(r"[^\w-]", text)[0] for text in project["project"]["dependencies"]}
    imported = {
        (name or "").partition(".")[0]
        for module in modules.values()
        for node in module.nodes
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    # msgspec.toml imports tomli where Python has no reader of its own.
    assert names - imported == {"tomli"}


def test_more_than_the_limit_fails_and_names_the_places() -> None:
    hold("things", ["a", "b"], 2, 0)
    hold("lines", 7, 7, 0)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)^things: 3,.*\nc$"):
        hold("things", ["a", "b", "c"], 2, 0)


def product(**texts: str) -> Package:
    """Modules of a made-up product, by path with ``__`` for a slash."""
    made = [parse(f"{PACKAGE}/{path.replace('__', '/')}.py", text) for path, text in texts.items()]
    return Package({module.name: module for module in made})


def test_a_circle_may_lead_through_a_function_a_type_and_a_text_of_a_table() -> None:
    made = product(
        a="def f():\n from pytest_ortbench.b import c",
        b="if TYPE_CHECKING:\n import pytest_ortbench.c",
        c="TABLE = {'x': 'pytest_ortbench.a:answer'}",
        d="from pytest_ortbench import a",
    )
    assert circles(made) == ["pytest_ortbench.a pytest_ortbench.b pytest_ortbench.c"]
    docstring = product(a="'pytest_ortbench.b'", b="from pytest_ortbench import a")
    assert circles(Package({**docstring, **product()})) == []


def test_a_relative_import_is_one_too() -> None:
    made = product(x__a="from . import b", x__b="from ..x.a import f")
    assert circles(made) == ["pytest_ortbench.x.a pytest_ortbench.x.b"]


def test_a_small_module_for_one_neighbour_is_counted() -> None:
    near = product(x__a="from pytest_ortbench.x.b import f", x__b="1")
    assert small_for_one(near) == ["pytest_ortbench.x.b for pytest_ortbench.x.a"]
    assert small_for_one(product(y="from pytest_ortbench.x.b import f", x__b="1")) == []
    assert (
        small_for_one(Package({**near, **product(x__c="from pytest_ortbench.x.b import f")})) == []
    )
    assert small_for_one(Package({**near, **product(x__b="1\n" * 80)})) == []


def test_names_used_twice_are_counted() -> None:
    made = product(a="class A: ...\ndef f(): ...\ndef _g(): ...", b="class A: ...\ndef f(): ...")
    assert classes_twice(made) == ["A: pytest_ortbench.a, pytest_ortbench.b"]
    assert functions_twice(made) == ["f: pytest_ortbench.a, pytest_ortbench.b"]
    other = product(b="def _g(): ...\nclass B:\n def f(self): ...")
    assert functions_twice(Package({**made, **other})) == []


def test_imports_inside_functions_are_counted_and_those_of_types_are_not() -> None:
    text = (
        "import pytest_ortbench.b\nif TYPE_CHECKING:\n import pytest_ortbench.b\n"
        "def f():\n from pytest_ortbench.b import c, d\n import json\n"
    )
    assert imports_inside(product(a=text, b="")) == ["pytest_ortbench/a.py:5"]


def test_lines_of_code_are_neither_docstrings_nor_comments_nor_blank() -> None:
    text = "'''What\nit is.'''\n\nimport json  # a comment\n# another\nA = '''one\ntwo'''\n"
    assert lines_of_code(product(a=text)[f"{PACKAGE}.a"]) == 3


def test_a_pass_is_named_by_words_and_by_whole_names() -> None:
    made = product(
        a="def of_soak(): ...",
        b="x = run.soakFor",
        c="'''Soak.'''\nsoaked = 1  # soak",
        d="x = 'soak'",
        passes__soak__run="soak = 1",
    )
    assert outside_of_pass(made, "soak", "soak") == [f"{PACKAGE}/{name}.py" for name in "abd"]
    made = product(a="LoadFor", b="load_run = Loaded", c="from x import LoadTest")
    assert outside_of_pass(made, "load", "Load|LoadTest") == [f"{PACKAGE}/c.py"]
