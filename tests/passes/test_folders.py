"""A pass lies in its folder: four modules name it elsewhere, and only the registry lists passes.

Sources are parsed, not imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from pytest_ortbench.passes.pass_object import Pass
from pytest_ortbench.passes.registry import PASSES
from tests import parsed
from tests.parsed import nodes_of, tree_of

NAMES = {entry.name: {entry.name, entry.result_field} for entry in PASSES}

#: Modules that may name a pass outside of its folder: registry, case result, settings, schema.
ALLOWED = {"passes/registry.py", "core/outcome.py", "core/case.py", "schema/bounds.py"}

#: Modules that may name three passes or more in one statement: the registry, and what version 1 of
#: the document looked like.
TABLES = {"passes/registry.py", "schema/migrations.py"}

#: Words that are the name of a metric by chance, by module.
BY_CHANCE = {
    ("launch/noise.py", "power"),
    ("fleet/procurement/economics.py", "power"),
    ("fleet/procurement/power.py", "power"),
    ("fleet/procurement/machines.py", "idle_power"),
    ("passes/load/facts.py", "ttft"),
    ("passes/load/facts.py", "tpot"),
}


@dataclass(frozen=True)
class Module:
    """What a module names.

    Attributes:
        modules: Dotted names that it imports, of modules and of what it takes from them.
        names: Identifiers that it uses.
        classes: Public classes that it has.
        texts: Its texts but for docstrings.
        statements: Texts of each statement that is no class.
    """

    modules: frozenset[str]
    names: frozenset[str]
    classes: frozenset[str]
    texts: frozenset[str]
    statements: tuple[frozenset[str], ...]


def module_of(text: str) -> Module:
    """Return what the source of a module names."""
    nodes = nodes_of(text)
    docs = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }

    def texts(root: Iterable[ast.AST]) -> frozenset[str]:
        return frozenset(
            node.value
            for node in root
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
        )

    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            modules |= {node.module or "", *(f"{node.module}.{a.name}" for a in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return Module(
        modules=frozenset(modules),
        names=frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        classes=frozenset(
            node.name
            for node in tree_of(text).body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        ),
        texts=texts(nodes),
        statements=tuple(
            texts(ast.walk(statement))
            for statement in tree_of(text).body
            if not isinstance(statement, ast.ClassDef)
        ),
    )


@cache
def product() -> dict[str, Module]:
    """The modules of the product by path; the shipped suites are user code."""
    return {
        path: module_of(text)
        for path, text in parsed.product().items()
        if "suites" not in path.split("/")
    }


def naming(name: str, metrics: set[str], modules: Mapping[str, Module]) -> set[str]:
    """The modules outside the folder of a pass that import from it, or name a class or metric."""
    folder, place = f"pytest_ortbench.passes.{name}", f"passes/{name}/"
    own = [module for path, module in modules.items() if path.startswith(place)]
    classes = {kind for module in own for kind in module.classes}
    return {
        path
        for path, module in modules.items()
        if not path.startswith(place)
        and (
            any(f"{imported}.".startswith(f"{folder}.") for imported in module.modules)
            or not classes.isdisjoint(module.names)
            or any(text.startswith((f"{folder}.", f"{folder}:")) for text in module.texts)
            or any((path, text) not in BY_CHANCE for text in metrics & module.texts)
        )
    }


def tables(modules: Mapping[str, Module]) -> set[str]:
    """The modules of which one statement or function names three passes or more."""
    return {
        path
        for path, module in modules.items()
        for statement in module.statements
        if sum(not names.isdisjoint(statement) for names in NAMES.values()) > 2
    }


@pytest.mark.live
def test_nothing_lists_passes_beside_the_registry() -> None:
    assert tables(product()) - TABLES == set()


@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_a_pass_is_named_in_four_modules_outside_its_folder(entry: Pass) -> None:
    assert naming(entry.name, set(entry.metric_names), product()) - ALLOWED == set()


def settings_of(name: str, modules: Mapping[str, str]) -> set[str]:
    """The fields of the settings of a run that the options of a pass fill."""
    return set(re.findall(r'to="sampling\.(\w+)"', modules.get(f"passes/{name}/options.py", "")))


def reading(name: str, modules: Mapping[str, str]) -> set[str]:
    """The modules outside the folder of a pass that look at a setting of it."""
    settings = settings_of(name, modules)
    return {
        path
        for path, text in modules.items()
        if not path.startswith(f"passes/{name}/")
        and any(
            isinstance(node, ast.Attribute)
            and node.attr in settings
            and ast.unparse(node.value).endswith("sampling")
            for node in nodes_of(text)
        )
    }


#: Modules of another pass that share a setting: Python's profilers look at stages and services.
SHARING = {"stages": {"passes/served/run.py"}}


@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_a_setting_of_a_pass_is_read_in_its_folder_alone(entry: Pass) -> None:
    # What runs were written without is left out of them.
    others = {"store/resume.py"} | SHARING.get(entry.name, set())
    assert reading(entry.name, parsed.product()) - others == set()


def test_a_module_that_reads_a_setting_is_found() -> None:
    modules = {
        "passes/soak/options.py": 'x = option(0.0, to="sampling.soak_s")',
        "passes/soak/run.py": "case.sampling.soak_s",
        "planning/a.py": "if case.sampling.soak_s: pass",
        "planning/b.py": "if case.sampling.time_s: pass",
    }
    assert reading("soak", modules) == {"planning/a.py"}


@pytest.mark.parametrize(
    "text",
    [
        "MEASURED = {'soak': 1, 'energy': 2, 'start_ups': 3}",
        "def without(name):\n"
        "    if name == 'soak': return 1\n"
        "    elif name == 'load': return 2\n"
        "    elif name == 'task': return 3",
    ],
)
def test_a_registry_beside_old_tables_fails(text: str) -> None:
    assert tables({"execution/passes.py": module_of(text)}) == {"execution/passes.py"}


@pytest.mark.parametrize(
    "text",
    [
        "from pytest_ortbench.passes.soak.run import measure",
        "from pytest_ortbench.passes import soak",
        "import pytest_ortbench.passes.soak.facts as facts",
        "ADD = 'pytest_ortbench.passes.soak.numbers:add_growth'",
        "def f(soak: Soak): ...",
        "COLUMNS = ('peak_rss', 'leaks')",
    ],
)
def test_a_module_that_names_a_pass_is_found(text: str) -> None:
    folder = {"passes/soak/facts.py": module_of("class Soak: ...")}
    modules = {**folder, "report/a.py": module_of(text)}
    assert naming("soak", {"leaks"}, modules) == {"report/a.py"}


def test_a_module_that_does_not_is_not() -> None:
    text = '"""What a soak finds: leaks."""\nfrom pytest_ortbench.passes.registry import PASSES'
    assert naming("soak", {"leaks"}, {"report/a.py": module_of(text)}) == set()
