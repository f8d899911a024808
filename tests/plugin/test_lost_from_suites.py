"""A model that the suite of a revision measured, and this one does not, is missed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.models.revisions import revision

from .conftest import QUICK

ModelFile = Callable[..., Path]

GATED = (*QUICK, "--ort-against=git:HEAD", "--ort-no-results")
GONE = "ortbench::removed[models/spam]"
HEAD = """
from pathlib import Path
import pytest
ROOT = Path(__file__).resolve().parents[1]
{models}
pytestmark = pytest.mark.ortbench(models=MODELS)
def test_latency(ortbench): ortbench.result
"""
LITERAL = 'MODELS = [ROOT / "models/sniff.onnx", ROOT / "models/spam.onnx"]'
SHORTER = 'MODELS = [ROOT / "models/sniff.onnx"]'
SEARCH = 'MODELS = sorted((ROOT / "models").glob("*.onnx"))'


def write_suite(folder: Path, models: str) -> None:
    path = folder / "benchmarks/test_models.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD.format(models=models))


@pytest.fixture
def commit(pytester: pytest.Pytester, model_file: ModelFile) -> Callable[[str], None]:
    """Commit two models, one of which is no business of the suite, and the suite."""

    def make(models: str) -> None:
        for name in ("models/sniff.onnx", "models/spam.onnx", "tests/data/tiny.onnx"):
            model_file(name)
        pytester.makeini("[pytest]\n")
        write_suite(pytester.path, models)
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        for call in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
            subprocess.run(
                ["git", "-C", pytester.path, *identity, *call], check=True, capture_output=True
            )

    return make


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    ("before", "now", "deletes"),
    [
        (LITERAL, SHORTER, True),
        (LITERAL, SHORTER, False),
        (SEARCH, SEARCH, True),
    ],
    ids=["line-and-file", "line", "search"],
)
def test_a_model_that_the_suite_of_the_base_named_is_an_item(
    before: str,
    now: str,
    deletes: bool,
    pytester: pytest.Pytester,
    commit: Callable[[str], None],
) -> None:
    commit(before)
    write_suite(pytester.path, now)
    if deletes:
        (pytester.path / "models/spam.onnx").unlink()
    (pytester.path / "tests/data/tiny.onnx").unlink()
    result = pytester.runpytest(*GATED, "--collect-only", "-q")
    assert GONE in result.stdout.lines
    assert sum(line.startswith("ortbench::removed") for line in result.stdout.lines) == 1
    result.stdout.fnmatch_lines(["*git:HEAD has 1 model that*deleted*: tests/data/tiny.onnx"])


@pytest.mark.needs("git")
def test_what_nothing_names_stands_in_document_and_summary(
    pytester: pytest.Pytester, commit: Callable[[str], None], drawn_numbers: None
) -> None:
    commit(SHORTER)
    (pytester.path / "models/spam.onnx").unlink()
    outputs = ("--ort-json=run.json", "--ort-summary=summary.md")
    result = pytester.runpytest(*GATED, *outputs)
    result.assert_outcomes(passed=1)
    run = json.loads((pytester.path / "run.json").read_text())
    assert run["unnamed"] == [
        {"place": "models/spam.onnx", "baseline": "git:HEAD", "is_there": False},
        {"place": "tests/data/tiny.onnx", "baseline": "git:HEAD", "is_there": True},
    ]
    summary = (pytester.path / "summary.md").read_text()
    assert "models/spam.onnx" in summary.partition("<details>")[0]


@pytest.mark.needs("git")
def test_a_revision_that_is_not_there_has_a_next_step(
    pytester: pytest.Pytester, commit: Callable[[str], None]
) -> None:
    with pytest.raises(UsageError) as outside:
        revision("main", pytester.path)
    assert "--ort-against=model:" in outside.value.hint
    commit(SHORTER)
    subprocess.run(["git", "-C", pytester.path, "branch", "-qM", "main"], check=True)
    with pytest.raises(UsageError) as raised:
        revision("mian", pytester.path)
    assert "'git:main'" in raised.value.hint
    with pytest.raises(UsageError) as unknown:
        revision("0123456789", pytester.path)
    assert "git fetch origin" in unknown.value.hint
