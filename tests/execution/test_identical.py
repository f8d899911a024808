"""Sides that are one and the same, and sides that only seem to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, InputSpec, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.gate.measuring.identical import identical
from pytest_ortbench.gate.measuring.pair import Pair
from tests.results_factory import make_case

SPEC = InputSpec(name="x", type="tensor(float)", shape=(1, 8), hint=ValueHint(kind="normal"))
OLD = replace(make_case(model="old"), inputs=(SPEC,))


def holding(case: Case, digest: str) -> Case:
    return replace(case, variant=replace(case.variant, digest=digest))


def as_contender(change: Callable[[Case], Case] = lambda case: case) -> bool:
    one = holding(OLD, "d1")
    return identical(Pair(baseline=one, contender=change(replace(one, model=OLD.model))))


def test_equal_files_under_equal_settings_are_identical_whatever_they_are_called():
    renamed = replace(OLD.model, name="new", path="/elsewhere/new.onnx")
    assert as_contender(lambda case: replace(case, model=renamed))
    assert as_contender(lambda case: replace(case, provider=replace(case.provider, named=False)))


@pytest.mark.parametrize(
    "change",
    [
        lambda case: holding(case, "d2"),
        lambda case: replace(case, runtime=Runtime(label="r", command=("python",))),
        lambda case: replace(case, runtime=replace(case.runtime, environment={"A": "1"})),
        lambda case: replace(case, provider=replace(case.provider, options={"a": "1"})),
        lambda case: replace(case, provider=replace(case.provider, device="1")),
        lambda case: replace(case, session=replace(case.session, intra_op_num_threads=1)),
        lambda case: replace(case, session=replace(case.session, entries={"a": "1"})),
        lambda case: replace(case, inputs=(replace(SPEC, shape=(2, 8)),)),
        lambda case: replace(case, inputs=(replace(SPEC, hint=ValueHint(kind="ones")),)),
        lambda case: replace(case, concurrency=2),
        lambda case: replace(case, io="device"),
        lambda case: replace(case, seed=1),
        lambda case: replace(case, dataset=Dataset(path="/d.npz")),
        lambda case: replace(case, stages="/stages.py"),
        lambda case: replace(case, added_work=1),
    ],
)
def test_other_files_or_settings_are_not(change):
    assert not as_contender(change)


def test_a_file_that_could_not_be_hashed_is_identical_to_none():
    case = holding(OLD, "")
    assert not identical(Pair(baseline=case, contender=case))


@pytest.mark.parametrize("kind", ["custom_ops", "library", "inputs"])
def test_libraries_and_inputs_are_held_against_each_other_by_content(tmp_path: Path, kind: str):
    def using(path: Path) -> Case:
        case = holding(OLD, "d1")
        if kind == "custom_ops":
            return replace(case, session=replace(case.session, custom_ops=(str(path),)))
        if kind == "library":
            return replace(case, provider=replace(case.provider, library=str(path)))
        return replace(case, inputs=(replace(SPEC, path=str(path)),))

    one, same, other = (tmp_path / name for name in ("a", "b", "c"))
    one.write_bytes(b"library")
    same.write_bytes(b"library")
    other.write_bytes(b"another")
    assert identical(Pair(baseline=using(one), contender=using(same)))
    assert not identical(Pair(baseline=using(one), contender=using(other)))
    assert not identical(Pair(baseline=using(one), contender=using(tmp_path / "absent")))
    assert not identical(Pair(baseline=using(one), contender=holding(OLD, "d1")))
