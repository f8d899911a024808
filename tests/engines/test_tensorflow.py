"""TensorFlow and TensorFlow Lite, as far as that goes without them; the rest is a heavy test."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.source import Source
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.registry import framework_of_file
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask
from pytest_ortbench.engines.tensorflow.worker import served
from pytest_ortbench.engines.tensorflow.worker.conversion import name_dimensions
from pytest_ortbench.engines.tensorflow.worker.files import sentence_said
from pytest_ortbench.engines.tflite.worker import TensorFlowLite
from pytest_ortbench.models.sources import source_at
from pytest_ortbench.worker.entry import exported_by, load_named


def alias_of(path: Path) -> str:
    kind = framework_of_file(path)
    return "" if kind is None else kind.alias


def exported(path: Path, target: Path) -> None:
    source, kind = load_named(path, "")
    exported_by(kind, source, target, {})


def test_files_and_folders_belong_to_their_framework(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    assert alias_of(folder) == ""
    (folder / "saved_model.pb").write_bytes(b"")
    assert alias_of(folder) == "tensorflow"
    assert alias_of(Path("net.KERAS")) == "tensorflow"
    assert alias_of(Path("net.tflite")) == "tflite"
    assert alias_of(Path("net.h5")) == ""
    source = source_at(folder)
    assert source is not None
    assert (source.path, source.refusal) == (folder, "")


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("net.keras", {"tensorflow", "tf2onnx"}),
        ("net.tflite", {"ai-edge-litert", "tensorflow", "tf2onnx"}),
    ],
)
def test_missing_packages_are_named_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, packages: set[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    path = tmp_path / name
    path.write_bytes(b"\0\0\0\0TFL3")
    with pytest.raises(WorkerError) as caught:
        exported(path, tmp_path / "model.onnx")
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "export")
    assert packages <= set(failure.hint.split())


def test_the_interpreter_is_a_package_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    task = EngineTask(
        path=Path("net.onnx"), inputs=(), outputs=(), threads=1, source=Source(path="net.tflite")
    )
    with pytest.raises(ImportError):
        TensorFlowLite(task).load()


def test_open_dimensions_have_names_that_no_conversion_changes() -> None:
    def value(name: str, *shape: int | str) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        [],
        "g",
        [value("ids", "unk__7", "unk__8"), value("image:0", "unk__9", 32, "unk__10")],
        [value("scores", "unk__11", 10)],
    )
    name_dimensions(graph, {"ids": {1: "tokens"}})
    shapes = {
        item.name: [size.dim_param or size.dim_value for size in item.type.tensor_type.shape.dim]
        for item in [*graph.input, *graph.output]
    }
    assert shapes == {
        "ids": ["batch", "tokens"],
        "image:0": ["batch", 32, "image_2"],
        "scores": [0, 10],
    }


def test_of_a_message_the_first_sentence_is_told() -> None:
    of_keras = TypeError("\n Unknown 'Net'. Full config: {'a': 1}\n")
    assert sentence_said(of_keras).endswith("'Net'\"")
    assert "ValueError" in sentence_said(ValueError())


#: What an error of TensorFlow is compared with.
_LIBRARY = SimpleNamespace(errors=SimpleNamespace(OpError=OSError))


@pytest.mark.parametrize(
    ("function", "settings"), [("", {}), ("build", {}), ("build", {"signature": "none"})]
)
def test_a_signature_is_chosen_where_the_user_can_choose(
    monkeypatch: pytest.MonkeyPatch, function: str, settings: dict[str, str]
) -> None:
    monkeypatch.setattr(served, "imported", lambda: _LIBRARY)
    saved = SimpleNamespace(signatures={"a": None, "b": None})
    loaded = LoadedSource(path=Path("net"), model=saved, function=function, settings=settings)
    with pytest.raises(EngineRefusal) as refused:
        served.traced(loaded)
    assert '{"signature": "a"}' in refused.value.hint
    assert ('load("net")' in refused.value.hint) is (not function)


@pytest.mark.parametrize(("count", "order"), [(1, False), (2, True)])
def test_names_are_asked_for_by_their_number(
    monkeypatch: pytest.MonkeyPatch, count: int, order: bool
) -> None:
    outputs = tuple(f"y{number}" for number in range(count))
    made = served.Served(function=None, owner=None, inputs=("x",), outputs=outputs)
    monkeypatch.setattr(served, "imported", lambda: _LIBRARY)
    monkeypatch.setattr(served, "_of_concrete", lambda *_: made)
    model = SimpleNamespace(structured_input_signature=())
    loaded = LoadedSource(path=Path("net.py"), model=model, settings={"outputs": ["a", "b", "c"]})
    with pytest.raises(EngineRefusal) as refused:
        served.traced(loaded)
    assert refused.value.hint.startswith(f"Write {count} ")
    assert ("order" in refused.value.hint) is order


def test_a_file_whose_model_has_no_inputs_is_measured_as_a_function() -> None:
    for function in ("", "build"):
        with pytest.raises(EngineRefusal) as refused:
            served._of_example(
                None, LoadedSource(path=Path("net"), model=None, function=function), batched=True
            )
        assert ("net.py:build" in refused.value.hint) is (not function)
