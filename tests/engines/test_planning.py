"""Engines among providers: how they are written, and what only sessions have."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Runtime, SessionConfig
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.engines.registry import ALIASES, brought_kinds, engine_kind, engine_kinds
from pytest_ortbench.planning.engines import provider_refusal
from pytest_ortbench.planning.provider_options import check_options
from pytest_ortbench.planning.providers import RuntimeOffer, expand, parse_provider, split_specs
from pytest_ortbench.worker.engine_case import EngineCase, supply_in
from tests.results_factory import make_case


def case_of(alias: str = "openvino-native") -> Case:
    return replace(make_case(), provider=parse_provider(alias))


def test_an_engine_is_written_like_a_provider_and_is_none() -> None:
    assert split_specs("cpu,openvino-native:GPU,openvino") == (
        "cpu",
        "openvino-native:GPU",
        "openvino",
    )
    provider = parse_provider("openvino-native:GPU")
    assert (provider.label, provider.name, provider.role) == (
        "openvino-native:GPU",
        "OpenVINO",
        "engine",
    )
    assert not provider.is_execution_provider
    assert parse_provider("openvino").is_execution_provider


def test_all_means_execution_providers_alone() -> None:
    providers, _ = expand(("all",), RuntimeOffer(available=("CPUExecutionProvider",)))
    assert [provider.alias for provider in providers] == ["cpu"]


def test_a_misspelt_engine_is_refused_with_its_name() -> None:
    split = split_specs("openvino-nativ")
    with pytest.raises(UsageError) as caught:
        expand(split, RuntimeOffer(available=("CPUExecutionProvider",)))
    assert "openvino-native" in caught.value.hint


def test_each_declaration_is_called_as_its_line_says() -> None:
    assert {alias: kind.alias for alias, kind in engine_kinds().items()} == {
        alias: alias for alias in ALIASES
    }
    assert engine_kind("no-such-engine") is None


def test_options_are_those_that_the_engine_declares() -> None:
    check_options("openvino-native", {"PERFORMANCE_HINT": "THROUGHPUT"})
    with pytest.raises(UsageError):
        check_options("openvino-native", {"PERFORMANCE_HIND": "THROUGHPUT"})


@pytest.mark.parametrize(
    ("changes", "is_refused"),
    [
        ({}, False),
        ({"session": SessionConfig(intra_op_num_threads=2)}, False),
        ({"session": SessionConfig(graph_optimization_level="basic")}, True),
        ({"session": SessionConfig(custom_ops=("ops.so",))}, True),
        ({"io": "device"}, True),
        ({"call": "async"}, True),
        ({"concurrency": 2, "sessions": 2}, False),
    ],
)
def test_what_only_a_session_has_is_refused(changes: dict[str, Any], is_refused: bool) -> None:
    refusal = provider_refusal(replace(case_of(), **changes))
    assert (refusal is not None) == is_refused
    if refusal is not None:
        assert refusal.kind == "unsupported"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"call": "async"}, "--ort-calls=async"),
        (
            {
                "knobs": {"opt": "basic"},
                "session": SessionConfig(graph_optimization_level="basic"),
            },
            "--ort-graph-opt",
        ),
        (
            {
                "knobs": {"spin": "off"},
                "session": SessionConfig(entries={"session.intra_op.allow_spinning": "0"}),
            },
            "--ort-spinning",
        ),
        (
            {"knobs": {"fix-dims": "on"}, "session": SessionConfig(fixed_dims={"N": 1})},
            "--ort-fix-dims=on",
        ),
        (
            {
                "compiled": True,
                "knobs": {"compiled": "on"},
                "session": SessionConfig(entries={"session.disable_model_compile": "1"}),
            },
            "--ort-compiled=on",
        ),
        (
            {"session": SessionConfig(entries={"session.disable_prepacking": "1"})},
            "--ort-session-option",
        ),
    ],
)
def test_a_refusal_names_the_option_that_was_set(changes: dict[str, Any], told: str) -> None:
    refusal = provider_refusal(replace(case_of(), **changes))
    assert refusal is not None
    assert refusal.hint.split()[-1] == told
    assert re.findall(r"--ort-[\w=-]+", refusal.message) == [told]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_package:ENGINE", "No module named"),
        ("json:dumps", "json:dumps"),
        ("pytest_ortbench.engines.tract.declaration:ENGINE", "'tract'"),
    ],
)
def test_what_a_package_brings_and_can_not_be_used_is_told(
    target: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "mine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[pytest_ortbench.engines]\nbroken = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    engine_kind.cache_clear()
    with pytest.raises(UsageError) as caught:
        parse_provider("broken")
    assert reason in str(caught.value)
    assert caught.value.hint.endswith("pip uninstall mine")
    engine_kind.cache_clear()
    kinds, problems = brought_kinds()
    assert ("broken" in kinds, "broken" in problems) == (False, True)


@pytest.mark.parametrize(
    ("runtime", "told"),
    [
        (Runtime(), "Run: pip install openvino"),
        (
            Runtime(label="box"),
            "Run: pip install openvino. Do this where the runtime 'box' measures",
        ),
        (
            Runtime(label="old", requirements=("onnxruntime==1.20.1", "numpy<2")),
            "Add the engine to the runtime: '--ort-runtimes=onnxruntime==1.20.1+numpy<2+openvino'",
        ),
    ],
)
def test_an_engine_is_supplied_where_it_is_lacking(runtime: Runtime, told: str) -> None:
    kind = engine_kind("openvino-native")
    assert kind is not None
    step = supply_in(runtime, kind, ModuleNotFoundError(name="openvino"))
    assert step == told


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        (("onnxruntime==1.20.1", "numpy<2"), "--ort-runtimes=onnxruntime==1.20.1+numpy<2+PACKAGE"),
        ((), f"{sys.executable} -m pip install PACKAGE"),
    ],
)
def test_a_runtime_without_the_package_of_an_engine_is_told_how_to_get_it(
    requirements: tuple[str, ...], told: str
) -> None:
    case = case_of()
    provider = replace(case.provider, alias="no-such-engine")
    runtime = Runtime(label="other", requirements=requirements)
    entered: list[str] = []
    with pytest.raises(WorkerError) as caught:
        EngineCase(replace(case, provider=provider, runtime=runtime), entered.append)
    # The reason of the case names the phase that was entered last.
    assert entered == [caught.value.failure.phase] == ["import"]
    assert caught.value.failure.kind == "unavailable"
    assert told in caught.value.failure.hint
