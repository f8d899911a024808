"""Which models run beside each other, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.together.planning import (
    PLACE,
    has_neighbours,
    is_called,
    neighbour_of,
    refuse_strangers,
    refuse_wrong_models,
    with_neighbours,
)
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.option_readers import read_several_models
from tests.results_factory import make_case


def of_file(folder: Path, name: str, **changes: Any) -> Case:
    """A case of a model file that is there."""
    path = folder / f"{name}.onnx"
    path.touch()
    case = make_case()
    place = path.relative_to(folder).as_posix()
    model = replace(case.model, name=name, source="file", path=str(path), place=place)
    return replace(case, model=model, **changes)


def written(texts: tuple[str, ...]) -> OptionText:
    return OptionText(texts=texts, place=PLACE, is_typed=True, base=Path())


def asked(*specs: str) -> PlanRequest:
    return PlanRequest(models=(), of_passes={"together": specs})


def test_each_named_model_runs_beside_the_others(tmp_path: Path) -> None:
    det, rec, cls = (of_file(tmp_path, name) for name in ("det", "rec", "cls"))
    specs = (str(tmp_path / "det.onnx"), str(tmp_path / "rec.onnx"))
    found = [with_neighbours(case, {"together": specs}) for case in (det, rec, cls)]
    # A path within the root of the run starts there, wherever that lies.
    assert [case.together for case in found] == [("rec.onnx",), ("det.onnx",), ()]
    assert [has_neighbours(case) for case in found] == [True, True, False]
    assert with_neighbours(det, {}) is det


def test_a_model_of_a_folder_and_one_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    det, rec = of_file(tmp_path, "sub/det"), of_file(tmp_path, "rec")
    specs = (det.model.path, "builtin:canary", rec.model.path)
    assert with_neighbours(det, {"together": specs}).together == ("builtin:canary", "rec.onnx")
    canary = make_case()
    canary = replace(canary, model=replace(canary.model, source="builtin:canary", place=""))
    assert with_neighbours(canary, {"together": specs}).together == (
        det.model.path,
        rec.model.path,
    )


@pytest.mark.parametrize("spec", ["det", "det.onnx", "{folder}/det.onnx", "{folder}/x/../det.onnx"])
def test_what_a_model_is_called(spec: str, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    det, rec = of_file(tmp_path, "det"), of_file(tmp_path, "rec")
    spec = spec.format(folder=tmp_path)
    assert is_called(det.model, spec)
    assert not is_called(rec.model, spec)


def test_a_name_that_no_file_can_have_is_nobodys(tmp_path: Path) -> None:
    assert not is_called(of_file(tmp_path, "det").model, "a\0b")


@pytest.mark.parametrize(
    "specs",
    [
        ("det.onnx",),
        ("det.onnx", "det.onnx"),
        ("det.onnx", "x/../det.onnx"),
        ("det", "det.onnx"),
        ("det.onnx", "gone.onnx"),
    ],
)
def test_models_that_can_not_be_together_are_refused(
    specs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    models = [of_file(tmp_path, name).model for name in ("det", "rec")]
    with pytest.raises(UsageError) as raised:
        refuse_wrong_models(asked(*specs), models)
    assert raised.value.place == PLACE
    refuse_wrong_models(asked("det.onnx", "rec.onnx"), models)
    refuse_wrong_models(asked(), models)


@pytest.mark.parametrize("texts", [("det,det",), ("det", "det")])
def test_one_model_that_is_named_twice_is_told_so(texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as raised:
        read_several_models(written(texts))
    assert "'det'" in raised.value.message
    assert "OTHER" not in raised.value.hint
    assert read_several_models(written(("det,rec,det",))) == ("det", "rec")
    assert read_several_models(written(("det",))) == ("det",)


def test_a_model_that_the_run_does_not_have_is_refused(tmp_path: Path) -> None:
    options = SimpleNamespace(together=("det", "rec"), place_of=lambda _: PLACE, given={})
    det, rec, cls = (of_file(tmp_path, name) for name in ("det", "rec", "cls"))
    refuse_strangers(options, [det, rec])
    # What a test makes while it runs comes alone.
    refuse_strangers(options, [replace(cls, model=replace(cls.model, is_made=True))])
    for cases in ([det], [], [replace(det, together=("rec", "cls")), rec]):
        with pytest.raises(UsageError) as raised:
            refuse_strangers(options, cases)
        assert raised.value.place == PLACE
        assert "--ort-models" not in raised.value.hint


@pytest.mark.parametrize(("spec", "added"), [("rec", "rec.onnx"), ("zoo:rec", "zoo:rec")])
def test_models_that_an_option_names_are_added_to_it(tmp_path: Path, spec: str, added: str) -> None:
    for place in ("--ort-models", "ort_models in pytest.ini"):
        options = SimpleNamespace(
            together=("det", spec),
            place_of={"together": PLACE, "models": place}.__getitem__,
            given={"models": "det.onnx"},
        )
        with pytest.raises(UsageError) as raised:
            refuse_strangers(options, [of_file(tmp_path, "det")])
        assert place in raised.value.hint
        assert added in raised.value.hint
        # A model that is named already is none to choose.
        assert "det" not in raised.value.hint
        with pytest.raises(UsageError) as raised:
            refuse_strangers(options, [of_file(tmp_path, name) for name in ("det", "cls")])
        assert "cls" in raised.value.hint


def test_the_second_model_that_is_proposed_is_one_of_the_run(tmp_path: Path) -> None:
    models = [of_file(tmp_path, name).model for name in ("det", "rec")]
    with pytest.raises(UsageError) as raised:
        refuse_wrong_models(asked("det"), models)
    assert "--ort-together=det,rec" in raised.value.hint
    with pytest.raises(UsageError) as raised:
        refuse_wrong_models(asked("det"), models[:1])
    assert "--ort-together=det,OTHER.onnx" in raised.value.hint
    alone = str(raised.value)
    # Each file of the command line is asked about by itself: one message is told, not two.
    with pytest.raises(UsageError) as raised:
        refuse_wrong_models(asked("det"), models[1:])
    assert str(raised.value) == alone


def test_the_neighbour_is_measured_as_the_case_is(tmp_path: Path) -> None:
    det = of_file(tmp_path, "det", batch=4)
    rec = of_file(tmp_path, "rec", batch=1)
    wide, cuda = replace(rec, batch=3), replace(rec, provider=parse_provider("cuda"))
    half = replace(rec, variant=replace(rec.variant, precision="fp16"))
    threads = replace(rec, session=replace(rec.session, intra_op_num_threads=1), batch=4)
    others = [half, cuda, threads, rec, wide]
    assert neighbour_of(det, "rec", others) is wide
    on_cuda = replace(det, provider=parse_provider("cuda"))
    assert neighbour_of(on_cuda, "rec", others) is cuda


@pytest.mark.parametrize("spec", ["gone", "rec"])
def test_without_such_a_case_there_is_a_reason(spec: str, tmp_path: Path) -> None:
    det, rec = of_file(tmp_path, "det"), of_file(tmp_path, "rec")
    half = replace(rec, variant=replace(rec.variant, precision="fp16"))
    assert isinstance(neighbour_of(det, spec, [half]), str)
