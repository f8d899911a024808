"""At which sizes an export is checked, and for which cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.core.source import Source
from pytest_ortbench.passes.export_check.planning import (
    has_source,
    other_fixed_sizes,
    read_export_check,
    sizes_to_check,
)
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.results_factory import make_case

SOURCE = Source(path="/net.py", function="build", framework="python")


def case_of(*inputs: TensorInfo, source: Source | None = SOURCE) -> Case:
    case = make_case()
    model = replace(case.model, inputs=inputs, exported_from=source)
    fed = resolve_inputs(model, batch=None, dims={})
    return replace(case, model=model, inputs=fed, dims={})


def tensor(name: str, *shape: int | str) -> TensorInfo:
    return TensorInfo(name=name, type="tensor(float)", shape=shape)


def test_each_open_dimension_gets_other_sizes_alone_and_all_at_once() -> None:
    choices = sizes_to_check(case_of(tensor("x", "batch", 3, "height")))
    first = choices[0]
    assert first.changed == ()
    batches = {entry.sizes["batch"] for entry in choices if entry.changed == ("batch",)}
    assert {2, 3} <= batches
    heights = {entry.sizes["height"] for entry in choices if entry.changed == ("height",)}
    assert {1, 2, 3, first.sizes["height"] + 1} <= heights
    assert [entry for entry in choices if entry.changed == ("batch", "height")]
    for entry in choices:
        assert entry.inputs[0].shape == (entry.sizes["batch"], 3, entry.sizes["height"])


def test_the_sizes_of_the_example_are_the_usual_ones(tmp_path: Path) -> None:
    np.savez(tmp_path / "example.npz", x=np.zeros((4, 3, 16)))
    source = replace(SOURCE, example=str(tmp_path / "example.npz"))
    choices = sizes_to_check(case_of(tensor("x", "batch", 3, "height"), source=source))
    assert choices[0].sizes == {"batch": 4, "height": 16}
    assert {entry.sizes["batch"] for entry in choices} >= {1, 2, 3, 4, 5, 8}


def test_a_file_without_open_dimensions_is_checked_as_it_is() -> None:
    case = case_of(tensor("x", 4, 3), tensor("y", 4, 64))
    (choice,) = sizes_to_check(case)
    assert (choice.sizes, choice.changed) == ({}, ())
    trials = {
        (fixed.axis, fixed.size): (fixed.inputs, fixed.tried, [spec.shape for spec in inputs])
        for fixed, inputs in other_fixed_sizes(case, choice.inputs)
    }
    # A batch is one of all inputs, and what is a multiple of 32 stays one.
    assert trials[(0, 4)] == (("x", "y"), 5, [(5, 3), (5, 64)])
    assert trials[(1, 64)] == (("y",), 96, [(4, 3), (4, 96)])


def test_it_is_for_files_that_were_exported_here() -> None:
    case = case_of(tensor("x", "batch", 3))
    assert has_source(case)
    assert not has_source(case_of(tensor("x", "batch", 3), source=None))
    framework = replace(case, provider=replace(case.provider, role="framework"))
    assert not has_source(framework)
    assert not has_source(replace(case, sampling=replace(case.sampling, export_check="off")))


def test_another_word_is_refused() -> None:
    written = OptionText(texts=("of",), place="--ort-export-check", is_typed=True, base=Path())
    with pytest.raises(UsageError) as caught:
        read_export_check(written)
    assert caught.value.place == "--ort-export-check"
