"""Modules imported from memory."""

from __future__ import annotations

import importlib
import marshal
import sys
import traceback
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from pytest_ortbench.worker.importer import SourceImporter, install, this_python
from tests.sent_modules import line_of

SOURCES = {
    "ort_sent": '"""Top."""\nVALUE = 1\n',
    "ort_sent.inner": '"""Package."""\n',
    "ort_sent.inner.leaf": "from ort_sent import VALUE\n\ndef fail():\n    raise ValueError('x')\n",
}


def lines(codes: Mapping[str, bytes] = MappingProxyType({})) -> dict[str, bytes]:
    """The modules as a host sends them, with codes as far as there are some."""
    return {name: line_of(name, text, codes.get(name, b"")) for name, text in SOURCES.items()}


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    finders, path = list(sys.meta_path), list(sys.path)
    yield
    sys.meta_path[:] = finders
    assert sys.path == path
    for name in SOURCES:
        sys.modules.pop(name, None)


def test_packages_and_modules() -> None:
    install(lines())
    leaf = importlib.import_module("ort_sent.inner.leaf")
    assert leaf.VALUE == 1
    assert sys.modules["ort_sent.inner"].__doc__ == "Package."
    assert sys.modules["ort_sent"].__path__ == []


def test_what_was_not_sent_is_not_there() -> None:
    install(lines())
    with pytest.raises(ModuleNotFoundError, match=r"ort_sent\.other"):
        importlib.import_module("ort_sent.other")
    assert SourceImporter(lines()).find_spec("json") is None


def test_tracebacks_show_place_and_line() -> None:
    install(lines())
    leaf = importlib.import_module("ort_sent.inner.leaf")
    with pytest.raises(ValueError) as caught:
        leaf.fail()
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "ort_sent/inner/leaf.py", line 4, in fail' in text
    assert "raise ValueError('x')" in text


@pytest.mark.parametrize(
    ("python", "value"),
    [(this_python(), 2), (["cpython-39", this_python()[1]], 1), ([this_python()[0], "00ff"], 1)],
)
def test_what_is_compiled_already_counts_for_the_same_python_only(
    python: list[str], value: int
) -> None:
    code = marshal.dumps(compile("VALUE = 2", "elsewhere.py", "exec"))
    install(lines({"ort_sent": code}), python)
    top = importlib.import_module("ort_sent")
    # Others come from their sources all the same.
    leaf = importlib.import_module("ort_sent.inner.leaf")
    assert {top.VALUE, leaf.VALUE} == {value}
