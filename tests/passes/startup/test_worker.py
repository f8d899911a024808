"""Which files a start reads, and so which have to be out of the page cache for a cold one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.source import Source
from pytest_ortbench.passes.startup.questions import StartUp
from pytest_ortbench.passes.startup.worker import files_of
from tests.results_factory import make_case, make_model

SOURCE = Source(path="/net.py", function="build", framework="torch", files=("/net.py", "/net.pt"))
CASE = make_case(model=replace(make_model(), exported_from=SOURCE))


@pytest.mark.parametrize(
    ("role", "files"),
    [
        ("provider", [CASE.variant.path, "/variants/weights.bin"]),
        ("engine", [CASE.variant.path, "/variants/weights.bin"]),
        ("framework", ["/net.py", "/net.pt"]),
    ],
)
def test_a_framework_reads_the_source_and_others_the_model(role: str, files: list[str]) -> None:
    case = replace(CASE, provider=Provider(alias="torch", name="PyTorch", role=role))
    question = StartUp(case=case, external_files=("weights.bin",))
    assert files_of(question) == [Path(file) for file in files]
