"""Pages that run a suite of the reader's, and what they have him write for the one of ``init``."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pytest_ortbench.cli.adoption.suite import OPTIONS, SUITE, options
from pytest_ortbench.plugin.option_sources import read_options

DOCS = Path(__file__).resolve().parents[2] / "docs"

#: What such a page has the reader write in place of what it prints.
_INSTEAD = re.compile(r"write\s+`(?P<written>[^`]+)`\s+for\s+`(?P<printed>[^`]+)`")
_BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"pytest benchmarks\b[^\n#>|{]*")
#: A session of nox has its words apart.
_APART = re.compile(r'"pytest", "benchmarks"')
_BEHIND = re.compile(r"^\$ (?:tox|nox) .* -- (.*)$", re.MULTILINE)
#: What CI services put in.
_VALUE = re.compile(r"\$\{\{.*?\}\}|\$[A-Z_]+")


def _pages() -> list[str]:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return [
        path.relative_to(DOCS).as_posix()
        for path, text in texts.items()
        if f"`pytest @{OPTIONS}" in text and "`pytest benchmarks`" in text
    ]


def _calls(text: str) -> list[str]:
    """Every call of the suite on a page, with what the reader of ``init`` writes."""
    instead = _INSTEAD.search(text)
    assert instead is not None
    code = _VALUE.sub("X", "".join(_BLOCK.findall(text)).replace("\\\n", " "))
    calls = [call.strip() for call in _CALL.findall(_APART.sub("pytest benchmarks\n", code))]
    calls += [f"{instead['printed']} {behind}" for behind in _BEHIND.findall(code)]
    assert all(instead["printed"] in call for call in calls), calls
    return [call.replace(instead["printed"], instead["written"]) for call in calls]


@pytest.mark.parametrize("page", _pages())
def test_a_call_for_the_suite_of_init_has_options_that_go_together(
    page: str, pytester: pytest.Pytester
) -> None:
    (pytester.path / SUITE).parent.mkdir()
    (pytester.path / SUITE).touch()
    (pytester.path / OPTIONS).write_text(options(budget="10m", results="results"))
    calls = _calls((DOCS / page).read_text(encoding="utf-8"))
    assert calls
    for call in calls:
        words = [word for word in shlex.split(call) if word.startswith(("@", "--ort-"))]
        assert words[0] == f"@{OPTIONS}", call
        read = read_options(pytester.parseconfig(*words))
        assert (read.budget_s is None) == ("--ort-budget=none" in words), call
