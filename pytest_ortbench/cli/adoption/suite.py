"""The suite and its options as ``ortbench init`` writes them.

A bare ``pytest`` collects neither: the file is not called like a file of tests, and options stand
in a file of their own, since unknown keys of a shared ini file would be a warning, or an error,
wherever the plugin is not installed.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import PurePosixPath

from pytest_ortbench.core.model_spec import OPTIONS_FILE, SUFFIXES

SUITE = "benchmarks/bench_models.py"
OPTIONS = OPTIONS_FILE

_TEXT = '''\
"""Benchmarks of this repository's models. Run them with: pytest @{options}

Limits of your own belong into the marker, of all models or of one test:

    limits=["latency_p90 <= 30 ms", "peak_rss <= 500 MB"]
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A pattern finds new models, too; a gate names models that are gone either way.
MODELS = [
{models}]

# What a pull request is held to against its base.
pytestmark = pytest.mark.ortbench(models=MODELS, gate=["latency:3%", "peak_rss:2%+1MiB"])


def test_latency(ortbench):
    """One inference takes some time; the gate of a pull request is judged here."""
    assert ortbench.latency().p50 > 0


def test_memory(ortbench):
    """Session and inferences take some memory."""
    memory = ortbench.memory()
    if memory.get("peak_rss") is None:
        pytest.skip("the platform does not tell how much memory a process takes")


def test_accuracy(ortbench):
    """The runtime computes this file as its reference does; the gate compares two files."""
    accuracy = ortbench.judgements()["accuracy"]
    if accuracy.is_unjudged:
        pytest.skip(accuracy.reason)
    assert accuracy.is_good, accuracy.reason
'''


def suite(models: Sequence[str], specs: Sequence[str], left_out: Sequence[str] = ()) -> str:
    """Return the suite.

    Args:
        models: Paths of model files, or patterns of them, with slashes.
        specs: Models that are no files of the repository: ``zoo:NAME``, ``builtin:NAME``.
        left_out: Paths of model files of the repository that no pattern may fit.
    """
    lines = [f"    ROOT / {literal(name)},\n" for name in patterns(models, left_out)]
    lines += [f"    {literal(spec)},\n" for spec in specs]
    return _TEXT.format(options=OPTIONS, models="".join(lines))


def patterns(models: Sequence[str], left_out: Sequence[str]) -> list[str]:
    """Return model files as one pattern a folder and ending; by name where none can be written.

    That is: of a folder that holds models which were left out, or whose name means something to a
    pattern; and of a file whose ending has capitals.

    Args:
        models: Paths of model files, with slashes.
        left_out: Paths of those that no pattern may fit.
    """
    of_others = {_pattern(name) for name in left_out}
    written: dict[str, None] = {}
    for name in models:
        pattern = _pattern(name)
        written[name if not pattern or pattern in of_others else pattern] = None
    return list(written)


def _pattern(name: str) -> str:
    """The pattern of a model's folder and ending; empty where none can be written."""
    path = PurePosixPath(name)
    if glob.has_magic(str(path.parent)) or path.suffix not in SUFFIXES or path.name.startswith("."):
        return ""
    return str(path.parent / f"*{path.suffix}")


def literal(text: str) -> str:
    """Return a text as Python writes it, in double quotes where that needs no escape."""
    literal = repr(text)
    return f'"{text}"' if literal == f"'{text}'" and '"' not in text else literal


def options(*, budget: str, results: str) -> str:
    """Return the options, one a line, as ``pytest @FILE`` reads them."""
    return "\n".join((SUITE, f"--ort-budget={budget}", f"--ort-results={results}", ""))
