"""Compiled files in the user's cache; a launcher stands in for providers that compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Provider, Runtime, SessionConfig
from pytest_ortbench.core.compilation import WAYS, Compilation
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import Model, Variant
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.planning.compilations import Compilations, compilation_key
from pytest_ortbench.schema.model_questions import CompileModel
from tests.results_factory import make_runtime_info

TENSORRT = Provider(alias="tensorrt", name="TensorrtExecutionProvider")
INFO = make_runtime_info()


@dataclass
class CompilingLauncher:
    """Writes what a provider would compile, or fails."""

    info: RuntimeInfo = INFO
    failure: Failure | None = None
    asked: list[Case] = field(default_factory=list)

    def inspect(self, runtime: Runtime) -> RuntimeInfo:
        assert runtime.label == "current"
        return self.info

    def ask(self, question: CompileModel, *, deadline: float) -> Compilation:
        assert deadline > 0
        self.asked.append(question.case)
        if self.failure is not None:
            raise WorkerError(self.failure)
        folder = Path(question.folder)
        file, engine = folder / "model.onnx", folder / "m.engine"
        file.write_bytes(b"nodes")
        engine.write_bytes(b"engine")
        return Compilation(
            file=file.name,
            digest=file_digest(file, ((engine.name, engine),)),
            size_bytes=11,
            external_files=(engine.name,),
            way=WAYS[0],
            compile_ns=7,
            compiled_nodes=1,
            other_nodes=0,
        )


@pytest.fixture
def launcher() -> CompilingLauncher:
    return CompilingLauncher()


@pytest.fixture
def compiled(launcher: Any, tmp_path: Path) -> Callable[[Case], Case]:
    """Prepare a case as a new process would."""

    def prepare(case: Case) -> Case:
        compilations = Compilations(launcher=launcher, folder=tmp_path / "cache" / "compiled")
        return compilations.prepare(case)

    return prepare


def case_of(**changed: Any) -> Case:
    model = Model(name="m", path="/m.onnx", source="file", digest="d" * 64, size_bytes=100)
    variant = Variant(precision="native", path=model.path, digest=model.digest, size_bytes=100)
    case = Case(model=model, variant=variant, provider=TENSORRT, compiled=True)
    return replace(case, **changed)


def test_a_case_gets_the_compiled_file_and_what_it_was_made_of(
    compiled: Callable[[Case], Case],
) -> None:
    variant = compiled(case_of()).variant
    assert Path(variant.path).read_bytes() == b"nodes"
    assert (variant.size_bytes, variant.external_files) == (11, ("m.engine",))
    made = variant.compilation
    assert made is not None
    assert (made.source, made.source_digest, made.source_bytes) == ("/m.onnx", "d" * 64, 100)
    assert (made.compile_ns, made.digest) == (7, variant.digest)
    assert variant.counted_path == "/m.onnx"


def test_what_was_compiled_is_used_again(
    compiled: Callable[[Case], Case], launcher: CompilingLauncher
) -> None:
    assert compiled(case_of()).variant == compiled(case_of()).variant
    assert len(launcher.asked) == 1


@pytest.mark.parametrize("name", ["model.onnx", "m.engine", "compiled.json"])
def test_what_was_changed_since_is_compiled_again(
    compiled: Callable[[Case], Case], launcher: CompilingLauncher, name: str
) -> None:
    folder = Path(compiled(case_of()).variant.path).parent
    (folder / name).write_bytes(b"{}")
    assert Path(compiled(case_of()).variant.path).read_bytes() == b"nodes"
    assert len(launcher.asked) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"variant": Variant(precision="native", path="/m.onnx", digest="e" * 64, size_bytes=100)},
        {"provider": replace(TENSORRT, options={"trt_fp16_enable": "True"})},
        {"provider": replace(TENSORRT, device="1")},
        {"provider": replace(TENSORRT, name="NvTensorRTRTXExecutionProvider")},
        {"session": SessionConfig(graph_optimization_level="basic")},
        {"session": SessionConfig(entries={"ep.context_node_name_prefix": "a"})},
    ],
)
def test_another_file_provider_or_option_makes_another_file(changed: dict[str, object]) -> None:
    assert compilation_key(case_of(**changed), INFO) != compilation_key(case_of(), INFO)


@pytest.mark.parametrize(
    "info",
    [
        replace(INFO, version="1.99.0"),
        replace(INFO, distributions={"onnxruntime-gpu": "1.99.0"}),
        replace(INFO, devices={"GPU-1": "another GPU, driver 2"}),
        replace(INFO, plugin_libraries={TENSORRT.name: __file__}),
    ],
)
def test_another_version_device_or_library_makes_another_file(info: RuntimeInfo) -> None:
    assert compilation_key(case_of(), info) != compilation_key(case_of(), INFO)


def test_who_asks_is_no_part_of_it() -> None:
    named = replace(case_of().model, name="other", path="/elsewhere/m.onnx")
    other = case_of(model=named, batch=8, knobs={"compiled": "on"})
    assert compilation_key(other, INFO) == compilation_key(case_of(), INFO)


def test_a_failure_stands_for_all_cases_of_the_run(launcher: Any, tmp_path: Path) -> None:
    launcher.failure = case_failure("no", phase="compile")
    compilations = Compilations(launcher=launcher, folder=tmp_path / "compiled")
    for batch in (1, 8):
        with pytest.raises(WorkerError) as caught:
            compilations.prepare(case_of(batch=batch))
        assert caught.value.failure == launcher.failure
    assert len(launcher.asked) == 1
    # Nothing is left of it, and a later run tries again.
    assert not [path for path in (tmp_path / "compiled").iterdir() if path.is_dir()]


def test_a_folder_that_others_write_to_is_not_used(launcher: Any, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    compilations = Compilations(launcher=launcher, folder=folder)
    with pytest.raises(WorkerError) as caught:
        compilations.prepare(case_of())
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("unavailable", "compile")
    assert launcher.asked == []
