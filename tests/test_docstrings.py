"""Docstrings say what is there: what they refer to exists, and parameters and fields are named."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.parsed import nodes_of, product

_REFERENCE = re.compile(r":(?:func|class|data|attr|meth|mod|exc):`~?pytest_ortbench\.([^`]+)`")
_ENTRY = re.compile(r"^    \*{0,2}([a-z]\w*):", re.MULTILINE)

#: Parameters and fields that nobody explains, since their types say it all.
_UNSAID = {"self", "cls", "ortbench", "opens_session"}


@cache
def names() -> dict[str, set[str]]:
    """Return what each module defines, by its dotted name within the package."""
    return {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): defined(text)
        for path, text in product().items()
    }


def defined(text: str) -> set[str]:
    """Return the names that a module gives to anything, however deep inside."""
    found = set()
    for node in nodes_of(text):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def is_known(target: str) -> bool:
    """Whether a reference leads to a module, or to something that a module defines."""
    parts = target.split(".")
    for length in range(len(parts), 0, -1):
        module = names().get(".".join(parts[:length]))
        if module is not None:
            return set(parts[length:]) <= module
    return False


def unlike(text: str) -> list[str]:
    """Return the functions and dataclasses of a module that have other names than are explained."""
    wrong = []
    for node in nodes_of(text):
        if isinstance(node, ast.FunctionDef):
            section = "Args"
            arguments = node.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            given += [rest for rest in (arguments.vararg, arguments.kwarg) if rest is not None]
            has = {argument.arg for argument in given}
        elif isinstance(node, ast.ClassDef) and any(
            "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            section = "Attributes"
            fields = (field.target for field in node.body if isinstance(field, ast.AnnAssign))
            has = {field.id for field in fields if isinstance(field, ast.Name)}
        else:
            continue
        _, heading, body = (ast.get_docstring(node) or "").partition(f"\n{section}:\n")
        explained = set(_ENTRY.findall(body.partition("\n\n")[0]))
        public = {name for name in has if not name.startswith("_")} - _UNSAID
        if heading and explained != public:
            wrong.append(f"{node.name}: {sorted(explained ^ public)}")
    return wrong


def test_docstrings_refer_to_what_is_there() -> None:
    lost = {
        path: [target for target in _REFERENCE.findall(text) if not is_known(target)]
        for path, text in product().items()
    }
    assert {path: targets for path, targets in lost.items() if targets} == {}


def test_parameters_and_fields_are_those_that_are_explained() -> None:
    wrong = {path: unlike(text) for path, text in product().items()}
    assert {path: texts for path, texts in wrong.items() if texts} == {}


def test_a_reference_that_leads_nowhere_is_found() -> None:
    assert is_known("core.ids.id_fits")
    assert not is_known("core.case.id_fits")
    assert not is_known("nowhere")


def test_a_parameter_that_is_gone_is_found() -> None:
    text = 'def f(a):\n    """Return.\n\n    Args:\n        b: What is no more.\n    """\n'
    assert unlike(text) == ["f: ['a', 'b']"]
