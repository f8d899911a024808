"""What a run was asked for, and what of a baseline nobody asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.planning.asked import Asked, without_unasked
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sides import pair_cases
from tests.results_factory import make_case


def at(path: Path | str, **axes) -> Case:
    case = make_case(model=Path(path).stem, **axes)
    model = dataclasses.replace(case.model, path=str(path), source="file")
    return dataclasses.replace(case, model=model)


def asked(root: Path, *models: str, **axes) -> Asked:
    plan = Plan(entries=(Planned(case=make_case(model="a")),))
    return Asked.of(PlanRequest(models=models, **axes), plan, root)


@pytest.mark.parametrize("models", [("new",), ("new/*.onnx",), ("new/g*.onnx",), ("a.onnx", "new")])
def test_a_folder_or_a_pattern_asks_for_what_it_held(tmp_path: Path, models):
    (tmp_path / "new").mkdir()
    assert asked(tmp_path, *models).names(at("/old/gone.onnx"))


@pytest.mark.parametrize("models", [("a.onnx",), ("new/h*.onnx",), ("zoo:gone",)])
def test_what_does_not_fit_was_not_asked_for(tmp_path: Path, models):
    (tmp_path / "new").mkdir()
    assert not asked(tmp_path, *models).names(at("/old/gone.onnx"))


def test_the_default_set_is_that_of_the_folder_models(tmp_path: Path):
    assert asked(tmp_path).names(at("/old/gone.onnx"))


def test_native_asks_for_no_variant_that_a_model_has_of_its_own(tmp_path: Path):
    variant = at("/old/a.onnx", precision="pruned")
    assert not asked(tmp_path, "a.onnx").names(variant)
    assert asked(tmp_path, "a.onnx", precisions=("native", "pruned")).names(variant)


@pytest.mark.parametrize(
    ("providers", "misses"),
    [(("cpu",), False), (("cuda",), True), (("cuda:1", "cpu"), True), (("all",), True)],
)
def test_a_provider_is_asked_for_by_name_or_with_all_others(tmp_path: Path, providers, misses):
    gone = at(tmp_path / "gone.onnx", provider="cuda")
    assert asked(tmp_path, "a.onnx", providers=providers).misses(gone) is misses


@pytest.mark.parametrize(
    ("providers", "misses"),
    [
        (("cuda~cpu",), True),
        (("CUDAExecutionProvider:0 ~ cpu",), True),
        (("cpu~cuda",), False),
        (("cuda", "cpu"), False),
        # No chain is among all.
        (("all",), False),
    ],
)
def test_a_chain_is_asked_for_by_its_links_in_their_order(tmp_path: Path, providers, misses):
    gone = at(tmp_path / "gone.onnx")
    gone = dataclasses.replace(gone, provider=parse_provider("cuda~cpu"))
    assert asked(tmp_path, "a.onnx", providers=providers).misses(gone) is misses


def test_a_file_that_is_there_and_was_not_named_is_not_missed(tmp_path: Path):
    path = tmp_path / "other.onnx"
    assert asked(tmp_path, "a.onnx").misses(at(path))
    path.touch()
    assert not asked(tmp_path, "a.onnx").misses(at(path))


def test_a_case_of_a_measured_model_is_missed(tmp_path: Path):
    path = tmp_path / "a.onnx"
    path.touch()
    assert asked(tmp_path, "a.onnx").misses(at(path, batch=8))


def test_vanished_and_unasked_cases_are_told_apart():
    contenders = [Planned(case=make_case(model="a"))]
    baselines = [Planned(case=make_case(model=name)) for name in ("a", "gone", "extra")]
    pairing = without_unasked(
        pair_cases(contenders, baselines, "model"),
        baselines,
        lambda case: case.model.name == "gone",
    )
    assert pairing.vanished == (("gone/native/cpu/b1", "current"),)
    assert pairing.unasked == (("extra/native/cpu/b1", "current"),)
