"""Rows of models that are compiled ahead; what is refused of them, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.compilation import CompiledPart
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.session_entries import NO_COMPILE
from pytest_ortbench.planning.matrix import Plan, Planned, Target, build_plan
from pytest_ortbench.planning.planned_again import TrustedOptions, request_of
from pytest_ortbench.planning.request import PlanRequest
from tests.planning.test_matrix import CPU, CUDA, make_model

OPENVINO = Provider(alias="openvino", name="OpenVINOExecutionProvider")
TRACT = Provider(alias="tract", name="tract", role="engine")
HERE = Runtime()
COMPILED = replace(
    make_model("c"),
    compiled=(CompiledPart(provider=OPENVINO.name, library="2025.4", nodes=1),),
)


def planned(
    *providers: Provider,
    compiled: tuple[str, ...] = ("off", "on"),
    model: Model | None = None,
    runtime: Runtime = HERE,
) -> Plan:
    request = PlanRequest(models=(), compiled=compiled)
    target = Target(runtime=runtime, providers=providers)
    return build_plan(request, [model or make_model()], [target])


def refusals(plan: Plan) -> dict[str, tuple[str, str] | None]:
    return {
        entry.case.case_id: None
        if entry.refusal is None
        else (entry.refusal.kind, entry.refusal.phase)
        for entry in plan.entries
    }


def test_a_compiled_row_stands_beside_the_plain_one() -> None:
    plain, ahead = planned(OPENVINO).entries
    assert plain.case.case_id == "m/native/openvino/b1/compiled:off"
    assert ahead.case.case_id == "m/native/openvino/b1/compiled:on"
    assert (plain.case.compiled, ahead.case.compiled) == (False, True)
    assert (plain.refusal, ahead.refusal) == (None, None)


def test_a_session_of_a_compiled_file_may_compile_nothing() -> None:
    plain, ahead = planned(OPENVINO).entries
    assert plain.case.session.entries == {}
    assert ahead.case.session.entries == {NO_COMPILE: "1"}


def test_without_the_option_no_row_is_renamed() -> None:
    [entry] = planned(OPENVINO, compiled=()).entries
    assert entry.case.case_id == "m/native/openvino/b1"
    assert entry.case.session.entries == {}


@pytest.mark.parametrize("provider", [CPU, CUDA])
def test_beside_a_plain_row_a_provider_that_compiles_nothing_is_left_out(
    provider: Provider,
) -> None:
    plan = planned(provider, OPENVINO)
    assert refusals(plan) == {
        f"m/native/{provider.label}/b1/compiled:off": None,
        "m/native/openvino/b1/compiled:off": None,
        "m/native/openvino/b1/compiled:on": None,
    }
    assert [skip.what for skip in plan.skips] == [f"m × {provider.label} × compiled:on"]


@pytest.mark.parametrize(("provider", "phase"), [(CPU, "compile"), (TRACT, "inputs")])
def test_where_nothing_else_is_asked_it_is_refused(provider: Provider, phase: str) -> None:
    plan = planned(provider, compiled=("on",))
    case_id = f"m/native/{provider.label}/b1/compiled:on"
    assert refusals(plan) == {case_id: ("unsupported", phase)}
    assert plan.skips == ()


@pytest.mark.parametrize(
    ("model", "runtime"),
    [
        (make_model(), Runtime(label="far", shares_files=False)),
        (replace(make_model(), path="/models/m.ort"), HERE),
        (replace(COMPILED, name="m"), HERE),
    ],
    ids=["another machine", "ort", "compiled already"],
)
def test_what_can_not_be_compiled_ahead_is_refused(model: Model, runtime: Runtime) -> None:
    plan = planned(OPENVINO, compiled=("on",), model=model, runtime=runtime)
    assert refusals(plan) == {
        "m/native/openvino/b1/compiled:on": ("unsupported", "compile"),
    }


@pytest.mark.parametrize("name", [OPENVINO.name, "OpenVINO", ""])
def test_a_compiled_file_runs_on_its_own_provider_however_that_is_spelt(name: str) -> None:
    model = replace(COMPILED, compiled=(CompiledPart(provider=name, nodes=2),))
    plan = planned(OPENVINO, compiled=(), model=model)
    assert refusals(plan) == {"c/native/openvino/b1": None}


@pytest.mark.parametrize("provider", [CPU, replace(CUDA, device=""), TRACT])
def test_on_any_other_it_is_refused(provider: Provider) -> None:
    plan = planned(provider, compiled=(), model=COMPILED)
    assert refusals(plan) == {f"c/native/{provider.label}/b1": ("unsupported", "session")}
    [entry] = plan.entries
    assert _names_the_owner(entry)


def _names_the_owner(entry: Planned) -> bool:
    return entry.refusal is not None and "--ort-providers=openvino" in entry.refusal.hint


def test_one_that_only_all_means_is_left_out() -> None:
    plan = planned(replace(CPU, named=False), OPENVINO, compiled=(), model=COMPILED)
    assert refusals(plan) == {"c/native/openvino/b1": None}
    assert [skip.what for skip in plan.skips] == ["c × cpu"]


def test_a_stored_case_is_planned_again_as_it_was(tmp_path: Path) -> None:
    _, stored = (entry.case for entry in planned(OPENVINO).entries)
    given = TrustedOptions(model="m.onnx")
    assert request_of(stored, given, tmp_path).compiled == ("on",)
    changed = replace(stored, knobs={"compiled": "/bin/sh"})
    with pytest.raises(UsageError):
        request_of(changed, given, tmp_path)
