"""Sources among models: how they are written, what is refused, and what an export is kept by."""

from __future__ import annotations

import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from pytest_ortbench.core.errors import ModelError, NoModelError, WorkerError
from pytest_ortbench.core.ids import model_of, model_part
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.model_spec import function_file
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.source import Exported, KeptExport, Source
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.registry import engine_kinds, framework_of_model
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.models.sources import names_function, pickled_weights, source_at
from pytest_ortbench.planning.engines import provider_refusal
from pytest_ortbench.planning.exports import ExportError, Exports
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.plugin.marked_paths import placed_specs
from pytest_ortbench.plugin.option_readers import read_models
from pytest_ortbench.schema.source_questions import ExportSource, ReadVersions
from pytest_ortbench.worker.exporting import export_source, read_versions
from pytest_ortbench.worker.state import WorkerState
from tests.results_factory import make_case

CODE = """
from beside import FACTOR

def build():
    return (lambda feeds: feeds["x"]), {"x": [[1.0, 2.0]]}, {"onnx": b"onnx", "files": ["w.bin"]}

def bare():
    return lambda feeds: feeds["x"]

def state():
    return {"weight": 1}

def nothing():
    pass

def four():
    return 1, 2, 3, 4

def misspelt():
    return bare(), None, {"onxx": b""}

def no_dictionary():
    return bare(), None, 3

def raising():
    raise ValueError("the weights\\nare gone")

def lacking():
    import no_such_package

def several():
    return bare(), 1.0, 2.0

class Net:
    pass

def unknown():
    return Net()

def needing(size, *, depth, more=3):
    return bare()

def waiting(*sizes, **more):
    return bare(*sizes, **more)

number = 3
"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "net.py"
    file.write_text(CODE)
    (tmp_path / "beside.py").write_text("FACTOR = 2\n")
    (tmp_path / "w.bin").write_bytes(b"weights")
    yield file
    sys.modules.pop("beside", None)


def exported(path: Path, function: str, folder: Path) -> Exported:
    folder.mkdir(exist_ok=True)
    question = ExportSource(path=str(path), function=function, folder=str(folder))
    return export_source(question, WorkerState(lambda _: None))


# -- how they are written --------------------------------------------------------------------------


def test_a_function_of_a_python_file_is_a_source(net: Path) -> None:
    for text in (f"{net}:build", f"{net}::build"):
        named = names_function(Path(text))
        assert named is not None
        assert (named.path, named.function, named.refusal) == (net, "build", "")
    assert names_function(net.parent / "other.py:build") is None
    assert names_function(net.parent / "net.onnx:build") is None


def test_a_source_is_called_as_it_is_written() -> None:
    assert model_part("nets/net.py:build") == "nets/net.py:build"
    assert model_of("nets/net.py:build/native/cpu/b1/threads:2") == "nets/net.py:build"
    assert model_part("net.py:deadbeef") != "net.py:deadbeef"  # as a digest is written
    assert model_part("a b.py:build") != "a_b.py:build"


def test_two_functions_of_one_file_are_two_models(net: Path) -> None:
    asked: list[tuple[Path, str]] = []

    def export(path: Path, function: str) -> KeptExport:
        asked.append((path, function))
        raise ModelError("not here")

    broken = resolve_models(["net.py:build", "net.py:bare"], root=net.parent, export=export)
    assert [model.name for model in broken] == ["net.py:build", "net.py:bare"]
    assert asked == [(net, "build"), (net, "bare")]


def test_a_source_without_its_file_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(NoModelError) as caught:
        resolve_models(["nope.py:build"], root=tmp_path)
    assert "nope.py" in caught.value.hint


# -- what is refused, whatever it is called --------------------------------------------------------


def _state_dict(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02.")


def _script(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", b"\x80\x02.")
        archive.writestr("net/code/__torch__.py", b"")


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"weight": 1}))


def _hdf5(path: Path) -> None:
    path.write_bytes(b"\x89HDF\r\n\x1a\n")


def _text(path: Path) -> None:
    path.write_text("nothing known")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["net.pth", "net.onnx", "net.pt2", "net.tflite", "net"])
def test_a_named_pipe_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    [broken] = resolve_models([name], root=tmp_path)
    assert isinstance(broken, BrokenModel)
    assert str(tmp_path / name) in str(broken.error)


@pytest.mark.parametrize(
    ("name", "write", "is_refused"),
    [
        ("net.pth", _state_dict, True),
        ("net.pth", _text, True),
        ("net.pt", _state_dict, True),
        ("weights", _state_dict, True),
        ("net.bin", _state_dict, True),
        ("net.pt", _script, False),
        ("net.pkl", _pickle, True),
        ("model.dat", _pickle, True),
        ("model.joblib", _text, True),
        ("net.ckpt", _state_dict, True),
        ("net.h5", _hdf5, True),
        ("net.safetensors", _text, True),
        ("notes.txt", _text, False),
    ],
)
def test_what_is_pickled_is_refused_with_the_recipe(
    name: str, write: Callable[[Path], None], is_refused: bool, tmp_path: Path
) -> None:
    file = tmp_path / name
    write(file)
    assert bool(pickled_weights(file)) == is_refused
    if not is_refused:
        return
    [broken] = resolve_models([name], root=tmp_path)
    assert isinstance(broken, BrokenModel)
    assert broken.name == name
    assert "net.py:build" in str(broken.error)


@pytest.mark.parametrize(
    "name",
    [
        "net.gguf",
        "net.GGUF",
        "net.mlmodel",
        "net.mlpackage",
        "net.pb",
        "net.pdmodel",
        "net.engine",
        "net.ubj",
    ],
)
def test_models_that_nothing_here_runs_are_refused_with_what_to_do(
    name: str, tmp_path: Path
) -> None:
    if name == "net.mlpackage":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(b"GGUF\x01\x02\x03")
    [broken] = resolve_models([name], root=tmp_path)
    assert isinstance(broken, BrokenModel)
    assert broken.name == name
    assert source_at(tmp_path / name) is not None
    assert any(word in str(broken.error) for word in ("ONNX", "onnx", "net.py:build"))


def test_the_file_that_marks_a_saved_model_stands_for_its_folder(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"\x08\x01")
    for place in (tmp_path / "saved", tmp_path / "saved" / "saved_model.pb"):
        source = source_at(place)
        assert source is not None
        assert (source.path, source.refusal) == (tmp_path / "saved", "")


def test_a_python_file_alone_is_asked_for_its_function(net: Path) -> None:
    source = source_at(net)
    assert source is not None
    assert "net.py:build" in source.refusal


# -- what a function may return --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "kind", "part"),
    [
        ("bare", "error", "'onnx'"),
        ("state", "error", "dict"),
        ("nothing", "error", "returned nothing"),
        ("four", "error", "4 values"),
        ("misspelt", "error", "'onxx'"),
        ("no_dictionary", "error", "int"),
        ("raising", "error", "net.py:26: raising() raised ValueError: the weights are gone"),
        ("lacking", "unavailable", "no_such_package"),
        ("buidl", "error", "'buidl'"),
        ("unknown", "error", " type Net,"),
        ("needing", "error", "needs the arguments size, depth"),
        ("waiting", "error", "'onnx'"),
        ("number", "error", "'number' in net.py is of type int"),
        ("number", "error", "e.g. net.py:build"),
        ("needing", "error", "'needing' is the wrong function"),
        ("several", "error", "(model, (first, second))"),
    ],
)
def test_what_goes_wrong_is_one_line_with_its_place(
    function: str, kind: str, part: str, net: Path, tmp_path: Path
) -> None:
    with pytest.raises(WorkerError) as caught:
        exported(net, function, tmp_path / "out")
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == (kind, "export")
    told = f"{failure.message} {failure.hint}"
    assert part in told
    assert "\n" not in told
    assert "net.py" in told
    assert failure.hint


def test_an_export_says_what_it_was_made_of(net: Path, tmp_path: Path) -> None:
    made = exported(net, "build", tmp_path / "out")
    assert (made.framework, made.file, made.example) == ("python", "model.onnx", "example.npz")
    assert (tmp_path / "out" / "model.onnx").read_bytes() == b"onnx"
    names = {Path(path).name for path in made.contents}
    assert names == {"net.py", "beside.py", "w.bin"}
    assert "python" in made.versions


def test_the_framework_is_that_of_the_nearest_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class Booster:
        pass

    Booster.__module__ = "boosting.basic"

    class Mine(Booster):
        pass

    kinds = engine_kinds()
    boosting = replace(kinds["python"], alias="boosting", models=("boosting",))
    monkeypatch.setattr(
        "pytest_ortbench.engines.registry.engine_kinds",
        lambda: {**kinds, "boosting": boosting},
    )
    assert framework_of_model(Mine()) is boosting
    assert framework_of_model(lambda: 0) == kinds["python"]


# -- what is kept ----------------------------------------------------------------------------------


class ExportingHere:
    """A launcher whose worker is this process."""

    def __init__(self) -> None:
        self.exported = 0

    def ask(self, question: object, **_: object) -> object:
        state = WorkerState(lambda _: None)
        if isinstance(question, ReadVersions):
            return read_versions(question, state)
        assert isinstance(question, ExportSource)
        self.exported += 1
        return export_source(question, state)


@pytest.fixture
def exports(tmp_path: Path) -> Callable[[], tuple[Exports, ExportingHere]]:
    def make() -> tuple[Exports, ExportingHere]:
        launcher = ExportingHere()
        folder = tmp_path / "cache" / "exports"
        return Exports(launcher=cast("Launcher", launcher), folder=folder), launcher

    return make


Make = Callable[[], tuple[Exports, ExportingHere]]


def test_an_export_is_made_once_and_kept(net: Path, exports: Make) -> None:
    first, launcher = exports()
    kept = first.obtain(net, "build")
    assert first.obtain(net, "build") == kept
    assert launcher.exported == 1
    later, launcher = exports()
    assert later.obtain(net, "build") == kept
    assert launcher.exported == 0
    assert kept.source.text == f"{net}:build"
    assert (kept.source.framework, len(kept.source.files)) == ("python", 3)
    assert Path(kept.source.example).is_file()


@pytest.mark.parametrize("file", ["net.py", "beside.py", "w.bin"])
def test_it_is_made_again_when_something_that_was_read_changes(
    file: str, net: Path, exports: Make
) -> None:
    before = exports()[0].obtain(net, "build")
    changed = net.parent / file
    changed.write_bytes(changed.read_bytes() + b"\n")
    later, launcher = exports()
    assert later.obtain(net, "build").source.digest != before.source.digest
    assert launcher.exported == 1


def test_states_that_were_left_long_ago_are_removed(net: Path, exports: Make) -> None:
    states = []
    for age_s in (2 * 86400, 60, 0):
        kept = exports()[0].obtain(net, "build")
        states.append(kept.path.parent)
        aged = kept.path.parent.stat().st_mtime - age_s
        os.utime(kept.path.parent, (aged, aged))
        net.write_bytes(net.read_bytes() + b"\n")
    assert [state.is_dir() for state in states] == [False, True, True]


@pytest.mark.parametrize("change", ["model", "record", "version", "link", "outside"])
def test_what_was_changed_in_the_cache_is_not_used(
    change: str, net: Path, exports: Make, tmp_path: Path
) -> None:
    kept = exports()[0].obtain(net, "build")
    record = kept.path.parent / "export.json"
    plain = json.loads(record.read_text())
    if change == "model":
        kept.path.write_bytes(b"other")
    elif change == "link":
        kept.path.rename(tmp_path / "elsewhere.onnx")
        kept.path.symlink_to(tmp_path / "elsewhere.onnx")
    elif change == "record":
        record.write_text("{")
    else:
        if change == "version":
            plain["versions"]["python"] = "2.7"
        else:
            plain["file"] = "../../../net.py"
        record.write_text(json.dumps(plain))
    later, launcher = exports()
    assert later.obtain(net, "build").path.read_bytes() == b"onnx"
    assert launcher.exported == 1


def test_a_cache_that_others_may_write_to_is_not_used(net: Path, exports: Make) -> None:
    cache, launcher = exports()
    cache.folder.mkdir(parents=True)
    cache.folder.chmod(0o777)
    with pytest.raises(ExportError) as caught:
        cache.obtain(net, "build")
    assert caught.value.failure.kind == "unavailable"
    assert launcher.exported == 0


def test_a_failure_is_told_again_and_not_tried_again(net: Path, exports: Make) -> None:
    cache, launcher = exports()
    for _ in range(2):
        with pytest.raises(ExportError) as caught:
            cache.obtain(net, "raising")
        assert isinstance(caught.value.failure, Failure)
    assert launcher.exported == 1


# -- frameworks among providers --------------------------------------------------------------------


def model_of_framework(framework: str) -> Model:
    model = make_case().model
    if not framework:
        return model
    return replace(model, exported_from=Source(path="/net.py", function="b", framework=framework))


@pytest.mark.parametrize(
    ("framework", "is_refused"), [("python", False), ("openvino-native", True), ("", True)]
)
def test_a_framework_runs_models_of_its_own_alone(framework: str, is_refused: bool) -> None:
    provider = parse_provider("python")
    assert provider.role == "framework"
    case = replace(make_case(), provider=provider, model=model_of_framework(framework))
    refusal = provider_refusal(case)
    assert (refusal is not None) == is_refused
    assert refusal is None or refusal.kind == "unsupported"


def test_a_kind_runs_what_it_says() -> None:
    kind = EngineKind(alias="torch-compile", title="", target="", runs=("torch",))
    assert kind.runs_models_of("torch")
    assert not kind.runs_models_of("torch-compile")
    assert replace(kind, exporter="m:f").runs_models_of("torch-compile")


def test_a_framework_reads_the_source_and_others_its_export_alone() -> None:
    model = replace(
        make_case().model, exported_from=Source(path="/net.py", files=("/net.py", "/w.bin"))
    )
    case = replace(make_case(), model=model)
    assert not set(case.further_files()) & {"/net.py", "/w.bin"}
    framework = replace(case, provider=parse_provider("python"))
    assert set(framework.further_files()) >= {"/net.py", "/w.bin"}


@pytest.mark.parametrize(
    ("spec", "file"),
    [
        ("net.py:build", "net.py"),
        ("nets/net.py::build", "nets/net.py"),
        ("C:\\nets\\net.PY:build", "C:\\nets\\net.PY"),
        ("net.py", ""),
        ("zoo:mobilenet", ""),
        ("net.onnx:build", ""),
    ],
)
def test_the_file_of_a_function_is_what_stands_before_the_colon(spec: str, file: str) -> None:
    assert function_file(spec) == file


def test_a_marker_and_an_ini_file_name_it_from_where_they_stand(net: Path) -> None:
    assert placed_specs(["net.py:build"], [net.parent]) == (f"{net}:build",)
    written = OptionText(
        place="pytest.ini", texts=("net.py:build",), base=net.parent, is_typed=False
    )
    assert read_models(written) == (f"{net}:build",)


def test_a_source_that_is_named_is_a_module_of_its_own_and_no_other_file(
    pytester: pytest.Pytester,
) -> None:
    _state_dict(pytester.path / "net.pth")
    _text(pytester.path / "notes.txt")
    named = pytester.runpytest("net.pth", "--collect-only", "-q", "-k", "latency")
    named.stdout.fnmatch_lines(["*net.pth::test_latency*"])
    passed = pytester.runpytest(".", "--collect-only", "-q", "-o", "ort_collect=true")
    assert "net.pth" not in passed.stdout.str()
