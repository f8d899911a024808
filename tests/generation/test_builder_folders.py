"""Folders that onnxruntime-genai's own builder makes, measured under both engines.

torch and transformers are installed beside the product, in an environment of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.passes.generation.declaration import PASS
from tests.beside_packages import PYTORCH, interpreter_beside, run_beside
from tests.generation import making

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

PACKAGES = (
    PYTORCH,
    "transformers",
    "onnxruntime-genai",
    "onnx",
    "onnx-ir",
    "sentencepiece",
)

#: Metrics that have nothing to measure here: there is no encoder, and the buffer of the cache does
#: not grow. Under a session requests begin with tokens, not with a text.
NOWHERE = frozenset({"encoder_time", "memory_per_token", "real_time_factor"})
WITHOUT = {"genai": NOWHERE, "session": NOWHERE | {"request_ttft"}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder with the four folders, and the interpreter of the environment."""
    folder = tmp_path_factory.mktemp("made")
    python = interpreter_beside(PACKAGES, extras="text")
    run_beside(python, str(making.__file__), folder=folder)
    return folder, python


@pytest.mark.parametrize("precision", ["fp32", "int4"])
@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_every_metric_is_there_under_both_engines(
    made: tuple[Path, str], name: str, precision: str
) -> None:
    folder, python = made
    results = f"--ort-results=results-{name}-{precision}"
    (folder / "text.txt").write_text(str(__doc__) * 3, encoding="utf-8")
    asked = ["--ort-prompt-tokens=16:512", "--ort-new-tokens=64", "--ort-generate=only"]
    asked.append("--ort-text=text.txt")
    test = [python, "-m", "pytest", f"{name}-{precision}", "-q", *asked, results]
    run_beside(*test, folder=folder)
    rows: list[dict[str, Any]] = json.loads(
        run_beside(
            python,
            "-m",
            "pytest_ortbench.cli",
            "export",
            "--format=json",
            f"--results={results.partition('=')[2]}",
            "latest",
            folder=folder,
        ).stdout
    )
    assert {(row["engine"], row["prompt_tokens"]) for row in rows} == {
        (engine, prompt) for engine in WITHOUT for prompt in (16, 512)
    }
    for row in rows:
        missing = {metric.name for metric in PASS.metrics if row[metric.column] is None}
        assert missing == WITHOUT[row["engine"]], row
