"""The suite and its options as ``ortbench init`` writes them.

A bare ``pytest`` collects neither: the file is not called like a file of tests, and options stand
in a file of their own, since unknown keys of a shared ini file would be a warning, or an error,
wherever the plugin is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence

SUITE = "benchmarks/bench_models.py"
OPTIONS = "benchmarks/options.txt"

_TEXT = '''\
"""Benchmarks of this repository's models. Run them with: pytest @{options}

Limits of your own belong into the marker, of all models or of one test:

    limits=["latency_p90 <= 30 ms", "peak_rss <= 500 MB"]
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
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
    """The answers are those of the reference, as far as the model's precision allows."""
    accuracy = ortbench.judgements()["accuracy"]
    if accuracy.is_unjudged:
        pytest.skip(accuracy.reason)
    assert accuracy.is_good, accuracy.reason
'''


def suite(models: Sequence[str], specs: Sequence[str]) -> str:
    """Return the suite.

    Args:
        models: Paths of model files, with slashes.
        specs: Models that are no files of the repository: ``zoo:NAME``, ``builtin:NAME``.
    """
    lines = [f"    ROOT / {_literal(name)},\n" for name in models]
    lines += [f"    {_literal(spec)},\n" for spec in specs]
    return _TEXT.format(options=OPTIONS, models="".join(lines))


def _literal(text: str) -> str:
    """A text as Python writes it, in double quotes where that needs no escape."""
    literal = repr(text)
    return f'"{text}"' if literal == f"'{text}'" and '"' not in text else literal


def options(*, budget: str, results: str) -> str:
    """Return the options, one a line, as ``pytest @FILE`` reads them."""
    return "\n".join((SUITE, f"--ort-budget={budget}", f"--ort-results={results}", ""))
