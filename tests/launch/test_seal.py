"""Files that changed after they were collected: what they were measured as is not kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import EncoderFile, Reference
from pytest_ortbench.core.outcome import CHANGED_FILE, Failure
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.launch import seal
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.launch.reference import reference_case
from pytest_ortbench.planning.real_inputs import with_contents
from pytest_ortbench.schema.case_questions import TimeBlock

from .cases import case_of, relu, save


def _other(path: Path) -> None:
    """Put another model of the same size there, with the times of the old one."""
    before = path.stat()
    save(path, [helper.make_node("Tanh", ["x"], ["y"])])
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _failure(check: Callable[[], object]) -> Failure:
    with pytest.raises(WorkerError) as caught:
        check()
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("error", CHANGED_FILE)
    return failure


@pytest.mark.parametrize("change", ["content", "truncated", "empty", "deleted", "folder"])
def test_a_model_that_changed(tmp_path: Path, change: str) -> None:
    path = relu(tmp_path / "m.onnx")
    sealed = seal.measured(case_of(path))
    sealed.check()
    before = file_digest(path)
    if change == "content":
        _other(path)
    elif change == "truncated":
        path.write_bytes(path.read_bytes()[:-3])
    elif change == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if change == "folder":
            path.mkdir()
    failure = _failure(sealed.check)
    begin = {"deleted": "was", "folder": "can't"}.get(change, "has")
    assert failure.message.startswith(f"{path} {begin} ")
    # What is gone is put back; nobody waits for it.
    assert failure.hint.startswith("Run" if path.is_file() else "Restore")
    if path.is_file():
        digests = re.findall(r"SHA-256 (\w+)…", failure.message)
        assert digests == [file_digest(path)[:12], before[:12]]


def test_a_file_that_was_only_touched_or_copied_is_the_same(tmp_path: Path) -> None:
    path = relu(tmp_path / "m.onnx")
    sealed = seal.measured(case_of(path))
    os.utime(path, ns=(1, 1))
    sealed.check()
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    sealed.check()


def test_external_data_of_model_and_variant(tmp_path: Path) -> None:
    path, data = relu(tmp_path / "m.onnx"), tmp_path / "w.bin"
    data.write_bytes(b"first")
    case = case_of(path)
    digest = file_digest(path, (("w.bin", data),))
    case = replace(
        case,
        model=replace(case.model, digest=digest, external_files=("w.bin",)),
        variant=replace(case.variant, digest=digest),
    )
    made = replace(case, variant=replace(case.variant, external_files=("w.bin",)))
    seals = (seal.measured(case), seal.measured(made), seal.source(case))
    for sealed in seals:
        sealed.check()
    data.write_bytes(b"other")
    for sealed in seals:
        assert "external data" in _failure(sealed.check).message


def _reading(case: Case, file: Path, what: str) -> Case:
    """The case with a file that it reads besides."""
    path = str(file)
    if what == "inputs":
        return replace(case, inputs=tuple(replace(spec, path=path) for spec in case.inputs))
    if what == "custom operators":
        return replace(case, session=replace(case.session, custom_ops=(path,)))
    if what == "library":
        return replace(case, provider=replace(case.provider, library=path))
    if what == "plug-ins":
        return replace(case, runtime=replace(case.runtime, plugins={"X": path}))
    if what == "stages":
        return replace(case, stages=path)
    return replace(case, dataset=Dataset(path=path))


@pytest.mark.parametrize(
    "what", ["inputs", "custom operators", "library", "plug-ins", "stages", "labelled data"]
)
def test_what_a_case_reads_besides(tmp_path: Path, what: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"first")
    case = with_contents(_reading(case_of(relu(tmp_path / "m.onnx")), file, what))
    assert case.file_contents == {str(file): file_digest(file)}
    for sealed in (seal.measured(case), seal.source(case)):
        sealed.check()
        file.write_bytes(b"other")
        assert str(file) in _failure(sealed.check).message
        file.unlink()
        assert _failure(sealed.check).message.startswith(f"{file} was removed")
        file.write_bytes(b"first")


def test_a_library_that_is_not_on_this_machine_is_another_machines_business(
    tmp_path: Path,
) -> None:
    case = with_contents(
        _reading(case_of(relu(tmp_path / "m.onnx")), tmp_path / "none", "custom operators")
    )
    assert case.file_contents == {}
    seal.measured(case).check()


def test_the_encoder_of_a_request_and_of_no_inference(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    path = relu(tmp_path / "encoder.onnx")
    encoder = EncoderFile(path=str(path), source="file", digest=file_digest(path), size_bytes=1)
    inference = replace(case, model=replace(case.model, encoder=encoder))
    request = seal.measured(replace(inference, encoder_inputs=case.inputs))
    request.check()
    _other(path)
    assert str(path) in _failure(request.check).message
    seal.measured(inference).check()


def test_the_named_reference_and_the_source_of_a_conversion(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    right = relu(tmp_path / "right.onnx")
    named = Reference(name="right", path=str(right), digest=file_digest(right))
    of_reference = seal.source(
        reference_case(replace(case, model=replace(case.model, reference=named)))
    )
    of_conversion = seal.converted(
        Conversion(
            recipe=Recipe(name="fp16", base="fp16"),
            source=str(right),
            digest=file_digest(right),
            size_bytes=right.stat().st_size,
            own_precision="fp32",
            inputs=case.inputs,
        )
    )
    for sealed in (of_reference, of_conversion):
        sealed.check()
    _other(right)
    for sealed in (of_reference, of_conversion):
        assert str(right) in _failure(sealed.check).message


def test_a_worker_is_not_opened_on_another_file(launcher: ProcessLauncher, tmp_path: Path) -> None:
    path = relu(tmp_path / "m.onnx")
    case = case_of(path)
    _other(path)
    _failure(lambda: launcher.open(case, worker=0, deadline=None))


def test_an_answer_on_another_file_does_not_count(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    path = relu(tmp_path / "m.onnx")
    worker = launcher.open(case_of(path), worker=0, deadline=None)
    worker.ask(TimeBlock(iterations=1))
    _other(path)
    _failure(lambda: worker.ask(TimeBlock(iterations=1)))
    worker.close()


def test_reference_outputs_of_another_file_are_not_kept(
    launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = relu(tmp_path / "m.onnx")
    finish = WorkerProcess.finish

    def changing(process: WorkerProcess, *arguments: Any) -> object:
        answer = finish(process, *arguments)
        _other(path)
        return answer

    monkeypatch.setattr(WorkerProcess, "finish", changing)
    _failure(lambda: launcher.reference(case_of(path), tmp_path / "scratch"))
    assert list((tmp_path / "scratch").iterdir()) == []
