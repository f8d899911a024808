"""Compiling ahead in a worker, and what is said of files that a provider does not load."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from onnx import helper

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.compilation import WAYS, CompiledPart
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.schema.model_questions import CompileModel
from pytest_ortbench.worker.compiling import record_of
from pytest_ortbench.worker.session import told_as_compiled
from tests.models.test_compiled_files import BLOB, compiled_file, context_node
from tests.results_factory import make_case

OPENVINO = Provider(alias="openvino", name="OpenVINOExecutionProvider")


def case_on(provider: Provider, path: Path) -> Case:
    model = read_model(path, name="m", source="file")
    case = make_case()
    variant = replace(
        case.variant, path=str(path), digest=model.digest, size_bytes=model.size_bytes
    )
    return replace(case, model=model, variant=variant, provider=provider, compiled=True, inputs=())


def test_the_record_says_what_the_file_holds(tmp_path: Path) -> None:
    nodes = (
        context_node("x", "a", embed_mode=0, ep_cache_context=BLOB),
        helper.make_node("Relu", ["a"], ["y"]),
    )
    (tmp_path / BLOB).write_bytes(b"compiled")
    path = compiled_file(tmp_path / "model.onnx", *nodes)
    made = record_of(case_on(OPENVINO, path), path, way=WAYS[1], compile_ns=3)
    assert (made.file, made.external_files) == ("model.onnx", (BLOB,))
    assert (made.compiled_nodes, made.other_nodes) == (1, 1)
    assert made.size_bytes == path.stat().st_size + 8
    assert made.digest == file_digest(path, ((BLOB, tmp_path / BLOB),))
    assert (made.way, made.compile_ns) == (WAYS[1], 3)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_without_a_compiled_part_is_none(tmp_path: Path, is_there: bool) -> None:
    path = compiled_file(tmp_path / "model.onnx", helper.make_node("Relu", ["x"], ["y"]))
    case = case_on(OPENVINO, path)
    if not is_there:
        path.unlink()
    with pytest.raises(WorkerError) as caught:
        record_of(case, path, way=WAYS[0], compile_ns=3)
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("unsupported", "compile")


@pytest.mark.live
def test_a_compiled_file_that_is_refused_is_told_as_one(tmp_path: Path) -> None:
    path = compiled_file(tmp_path / "model.onnx", context_node(embed_mode=1))
    case = case_on(OPENVINO, path)
    assert case.model.compiled == (CompiledPart(provider=OPENVINO.name, library="2025.4", nodes=1),)
    with pytest.raises(WorkerError) as caught, told_as_compiled(case):
        raise RuntimeError("type 1\nmore")
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unsupported", "session")


def test_what_says_all_stays_as_it_is(tmp_path: Path) -> None:
    path = compiled_file(tmp_path / "plain.onnx", helper.make_node("Relu", ["x"], ["y"]))
    with pytest.raises(RuntimeError, match=r"^native$"), told_as_compiled(case_on(OPENVINO, path)):
        raise RuntimeError("native")


def test_a_provider_that_compiles_nothing_is_seen_by_the_file_that_it_writes(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    path = compiled_file(tmp_path / "plain.onnx", helper.make_node("Relu", ["x"], ["y"]))
    cpu = Provider(alias="cpu", name="CPUExecutionProvider")
    folder = tmp_path / "made"
    folder.mkdir()
    question = CompileModel(case=case_on(cpu, path), folder=str(folder))
    with pytest.raises(WorkerError) as caught:
        launcher.ask(question, deadline=time.monotonic() + 120)
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("unsupported", "compile")
