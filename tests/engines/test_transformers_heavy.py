"""Language models of transformers for real: requests in PyTorch beside those of their export.

torch, transformers and onnxruntime-genai, whose builder exports, are installed beside the product.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.store.documents import load
from tests.beside_packages import interpreter_beside, run_beside
from tests.generation import making
from tests.generation.test_builder_folders import PACKAGES

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

#: Carries out the same request under both engines, and says what was written and what was loaded.
_WRITE = """\
import json, sys
from dataclasses import replace
from pathlib import Path
from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.models.transformers_folder import folder_at
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.worker.generation.requests import Prompts
from pytest_ortbench.worker.standard import opened_as

root, told = Path.cwd(), {}
for name in ("llama", "phi3"):
    (model,) = resolve_models([f"{name}-fp32"], root=root)
    model = replace(model, exported_from=folder_at(root / f"{name}-source").source())
    provider = Provider(alias="torch", name="PyTorch", role="framework")
    request = PlanRequest(models=(), generate="only", engines=("generate", "forward"),
                          prompt_tokens=(16,), new_tokens=(24,), depths=(0, 8), batch_sizes=(2,))
    target = Target(runtime=Runtime(), providers=(provider,))
    for entry in build_plan(request, [model], [target]).entries:
        case = entry.case
        measured = opened_as(case)(case, lambda _: None)
        measured.open()
        engine = measured.live_requests().engine
        prompts = Prompts(case, seed=7)
        if case.generation.depth:
            engine.fill(prompts.draw(case.generation.depth))
        took = engine.request(prompts.draw(16), 24)
        told.setdefault(f"{name} {case.generation.depth}", []).append(engine.written.tolist())
        assert len(took.steps_ns) == 24
        measured.release()
print(json.dumps({"written": told, "loaded": "onnxruntime" in sys.modules}))
"""


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of the environment."""
    return interpreter_beside(PACKAGES, extras="text")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """Two folders of transformers and what the builder made of them."""
    place = tmp_path_factory.mktemp("transformers")
    run_beside(python, str(making.__file__), folder=place)
    (place / "pytest.ini").write_text("[pytest]\n")
    return place


def measured(folder: Path, python: str, model: str, *options: str) -> dict[str, CaseResult]:
    """Results of one run of pytest, by engine."""
    results = folder / f"results-{len(list(folder.iterdir()))}"
    run_beside(
        *(python, "-m", "pytest", model, "-q", "-p", "no:cacheprovider", "--ort-generate=only"),
        *("--ort-providers=cpu,torch", "--ort-time=0.5", "--ort-workers=1", "--ort-threads=1"),
        *("--ort-prompt-tokens=16", "--ort-new-tokens=16", f"--ort-results={results}", *options),
        folder=folder,
        may_fail=True,
    )
    (document,) = results.glob("*/run.json")
    cases = load(document).cases
    return {result.case.knobs["engine"]: result for result in cases}


def flags(results: dict[str, CaseResult]) -> dict[str, set[str]]:
    return {engine: {flag.name for flag in flags_of(result)} for engine, result in results.items()}


def test_generate_and_our_own_loop_write_the_same_tokens(folder: Path, python: str) -> None:
    told = json.loads(run_beside(python, "-c", _WRITE, folder=folder).stdout.splitlines()[-1])
    assert told["loaded"] is False
    assert set(told["written"]) == {"llama 0", "llama 8", "phi3 0", "phi3 8"}
    for by_generate, by_loop in told["written"].values():
        assert by_generate == by_loop
        assert [len(row) for row in by_loop] == [24, 24]
        assert not any(2 in row for row in by_loop)


@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_requests_in_pytorch_stand_beside_those_of_the_export(
    folder: Path, python: str, name: str
) -> None:
    options = (f"--ort-source={name}-source", "--ort-engines=session,generate,forward")
    results = measured(folder, python, f"{name}-fp32", *options)
    assert set(results) == {"session", "generate", "forward"}
    for engine, names in flags(results).items():
        assert not names & {"WRONG-EXPORT", "INACCURATE", "NONFINITE"}, engine
    for engine in ("generate", "forward"):
        result = results[engine]
        assert result.status == "measured"
        (worker,) = result.measurements
        assert result.case.provider.role == "framework"
        assert (worker.runtime.version, worker.runtime.engine) == ("", "torch")
        assert "transformers" in worker.runtime.engine_version
        assert worker.options_in_force["dtype"] == "float32"
        assert worker.options_in_force["num_threads"] == "1"
        assert worker.startup.build_ns
        assert worker.startup.import_ns
        for request in worker.samples.requests:
            assert len(request.steps_ns) == request.new_tokens == 16
            assert (request.prepared_ns is None) == (engine == "forward")
        check = result.generation
        assert check is not None
        assert check.likeness is not None
        assert check.likeness.sqnr_db > 100
        assert check.likeness.same_greedy == check.likeness.tokens
        assert check.cache_bytes == check.cache_computed_bytes
        assert check.cache_tokens == 31
    export = results["session"].export_check
    assert export is not None
    assert {choice.sizes["batch_size"] for choice in export.choices} >= {1, 2, 3}
    assert all(choice.samples for choice in export.choices)


def test_the_folder_above_onnx_is_found(folder: Path, python: str) -> None:
    source = folder / "found"
    shutil.copytree(folder / "llama-source", source)
    shutil.copytree(folder / "llama-fp32", source / "onnx")
    (source / "onnx" / "genai_config.json").unlink()
    results = measured(folder, python, "found/onnx/model.onnx")
    assert {engine: result.status for engine, result in results.items()} == {
        "session": "measured",
        "generate": "measured",
    }


def test_other_weights_are_a_wrong_export_and_not_an_inaccurate_framework(
    folder: Path, python: str
) -> None:
    results = measured(folder, python, "llama-fp32", "--ort-source=phi3-source")
    seen = flags(results)
    assert "WRONG-EXPORT" in seen["session"]
    assert "WRONG-EXPORT" not in seen["generate"]
    assert "INACCURATE" not in seen["generate"]


@pytest.mark.parametrize("change", ["pickled", "lacking", "remote"])
def test_what_is_not_loaded_is_refused_with_its_reason(
    folder: Path, python: str, change: str
) -> None:
    source = folder / change
    shutil.copytree(folder / "llama-source", source)
    shutil.copytree(folder / "llama-fp32", source / "onnx")
    script = {
        "pickled": "Path('pytorch_model.bin').touch(); Path('model.safetensors').unlink()",
        "lacking": (
            "from safetensors.torch import load_file, save_file;"
            "held = load_file('model.safetensors'); held.pop('model.norm.weight');"
            "save_file(held, 'model.safetensors', metadata={'format': 'pt'})"
        ),
        "remote": (
            "import json; config = json.loads(Path('config.json').read_text());"
            "config |= {'model_type': 'own', 'auto_map': {'AutoConfig': 'own.Config',"
            "'AutoModelForCausalLM': 'own.Model'}};"
            "Path('config.json').write_text(json.dumps(config));"
            "Path('own.py').write_text('raise SystemExit(3)')"
        ),
    }[change]
    run_beside(python, "-c", f"from pathlib import Path; {script}", folder=source)
    results = measured(folder, python, f"{change}/onnx", "--ort-engines=session")
    assert results["session"].status == "measured"
    failure = results["generate"].failure
    assert failure is not None
    assert failure.kind in ("unsupported", "error")
    names = {"pickled": "pytorch_model.bin", "lacking": "model.norm.weight", "remote": "auto_map"}
    assert names[change] in failure.message
