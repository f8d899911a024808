"""PyTorch without PyTorch: what is declared of it, and what is made of its exporters' messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.registry import engine_kind, framework_of_file
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.torch.export import exporter_refusal, require_as_many
from pytest_ortbench.planning.provider_options import check_options
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.plugin.option_readers import read_exporter_settings
from pytest_ortbench.worker.entry import exported_by

#: As PyTorch 2.13 said it.
_NO_FUNCTION = (
    "No ONNX function found for <OpOverload(op='aten.linalg_eig', overload='default')>. Failure "
    "message: No decompositions registered for the real-valued input"
)
_CONVERSION = """\
Failed to convert the exported program to an ONNX model. \x1b[96mThis is step 3/3\x1b[0m of \
exporting the model to ONNX. Next steps:
- If there is a missing ONNX function, implement it and register it to the registry.
- If there is an internal error during ONNX conversion, debug the error.
"""
_BY_TORCHSCRIPT = (
    "Exporting the operator 'aten::linalg_eigvals' to ONNX opset version 18 is not supported"
)
_NAMESPACE = "ONNX export failed on an operator with unrecognized namespace mine::f. If you are"
_GUARD = """\
Could not guard on data-dependent expression Eq(u0, 1).

consider using data-dependent friendly APIs.
"""


@pytest.mark.parametrize("alias", ["torch", "torch-compile", "torch-script"])
def test_each_row_runs_models_of_pytorch_on_a_device(alias: str) -> None:
    kind = engine_kind(alias)
    assert kind is not None
    assert kind.runs_models_of("torch")
    assert not kind.runs_models_of("sklearn")
    provider = parse_provider(f"{alias}:cuda")
    assert (provider.role, provider.device, provider.name) == ("framework", "cuda", kind.title)
    check_options(alias, {"autocast": "bfloat16"})


def test_options_are_those_of_the_row() -> None:
    check_options("torch-compile", {"mode": "max-autotune"})
    check_options("torch-script", {"method": "script", "freeze": "0"})
    with pytest.raises(UsageError):
        check_options("torch", {"mode": "max-autotune"})


@pytest.mark.parametrize(
    ("name", "alias"), [("net.pt2", "torch"), ("NET.PT", "torch"), ("net.pth", None)]
)
def test_programs_are_sources_and_a_state_dict_is_none(name: str, alias: str | None) -> None:
    kind = framework_of_file(Path(name))
    assert (kind.alias if kind else None) == alias


def typed(*texts: str) -> OptionText:
    """What was written for the option."""
    return OptionText(place="--ort-exporter", texts=texts, is_typed=True, base=Path())


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        (("torchscript",), {"exporter": "torchscript"}),
        (("torchscript,opset=17",), {"exporter": "torchscript", "opset": "17"}),
        (("opset=17", "dynamo"), {"exporter": "dynamo", "opset": "17"}),
        ((), {}),
    ],
)
def test_an_exporter_is_named_by_a_word(texts: tuple[str, ...], settings: dict[str, str]) -> None:
    assert read_exporter_settings(typed(*texts)) == settings


def test_two_exporters_are_refused() -> None:
    with pytest.raises(UsageError):
        read_exporter_settings(typed("dynamo,torchscript"))


def test_a_setting_that_an_exporter_lacks_is_refused(tmp_path: Path) -> None:
    kind = engine_kind("torch")
    assert kind is not None
    source = LoadedSource(path=tmp_path / "net.py", model=None, function="build")
    with pytest.raises(WorkerError) as caught:
        exported_by(kind, source, tmp_path / "net.onnx", {"opsett": "17"})
    assert (caught.value.failure.kind, "opset" in caught.value.failure.hint) == ("error", True)


def raised(message: str, cause: str = "") -> Exception:
    """An error of an exporter, as it is caught."""
    try:
        try:
            raise ValueError(cause or message)
        except ValueError as error:
            if not cause:
                raise
            raise RuntimeError(message) from error
    except (ValueError, RuntimeError) as error:
        return error


@pytest.mark.parametrize(
    ("message", "cause", "exporter", "operator"),
    [
        (_CONVERSION, _NO_FUNCTION, "dynamo", "aten.linalg_eig"),
        (_BY_TORCHSCRIPT, "", "torchscript", "aten::linalg_eigvals"),
        (_NAMESPACE, "", "torchscript", "mine::f"),
    ],
)
def test_an_operator_that_an_exporter_lacks_is_named_with_its_opset(
    message: str, cause: str, exporter: str, operator: str
) -> None:
    refusal = exporter_refusal(raised(message, cause), exporter, 18, Path("net.py"))
    assert refusal.kind == "unsupported"
    assert {operator, "18"} <= {word.rstrip(":.") for word in str(refusal).split()}
    other = "torchscript" if exporter == "dynamo" else "dynamo"
    assert f"--ort-exporter={other}" in refusal.hint
    assert "\n" not in str(refusal) + refusal.hint
    assert "\x1b" not in str(refusal) + refusal.hint


def test_the_advice_of_an_exporter_is_passed_on() -> None:
    refusal = exporter_refusal(raised(_CONVERSION, _NO_FUNCTION), "dynamo", 18, Path("net.py"))
    advice = _CONVERSION.splitlines()[1].removeprefix("- ").rstrip(".")
    assert advice in str(refusal)


def test_the_line_of_the_model_that_led_to_it_is_named() -> None:
    error = raised(_CONVERSION, _GUARD)
    refusal = exporter_refusal(error, "dynamo", 20, Path(__file__))
    cause = error.__cause__
    assert cause is not None
    assert cause.__traceback__ is not None
    assert f"({Path(__file__).name}:{cause.__traceback__.tb_lineno})" in str(refusal)
    assert refusal.kind == "error"
    assert "friendly" not in str(refusal)


def test_names_without_a_tensor_are_refused_and_not_dropped() -> None:
    for given in (None, ["a"], ["a", "b"]):
        require_as_many("names", given, ["x", "y"])
    with pytest.raises(EngineRefusal) as refused:
        require_as_many("names", ["a", "b", "c"], ["x", "y"])
    assert (refused.value.kind, "'names'" in str(refused.value)) == ("error", True)
    assert refused.value.hint


def test_so_many_names_are_asked_for_as_there_are_tensors() -> None:
    for made, words in ((["y"], {"1", "name"}), (["y", "z"], {"2", "names"})):
        with pytest.raises(EngineRefusal) as refused:
            require_as_many("outputs", ["a", "b", "c"], made)
        assert words <= set(refused.value.hint.split())
    with pytest.raises(EngineRefusal) as refused:
        require_as_many("outputs", ["a"], [])
    assert "0" not in refused.value.hint
