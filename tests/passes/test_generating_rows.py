"""Passes on rows whose timed unit is a request to a language model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.generation import Decoder, Generation
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.passes.registry import pass_named
from pytest_ortbench.passes.startup.run import further_shapes
from tests.results_factory import make_case, make_result


class NoWorker:
    """A launcher of which nothing may be asked."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a worker is started: {name}")


def generating(**changes: Any) -> Case:
    """A case that times requests."""
    case = make_case(model="decoder")
    asked = Generation(engine="session", prompt_tokens=16, new_tokens=8)
    decoder = Decoder(ids="input_ids", logits="logits", vocabulary=50, end_tokens=(7,))
    model = replace(case.model, decoder=decoder)
    return replace(case, model=model, generation=asked, **changes)


def measured(name: str, case: Case) -> Any:
    """What a pass finds of a case without any worker."""
    entry = pass_named(name)
    result = make_result(case=case)
    return entry.load(entry.measure)(result, Means(launcher=cast(Launcher, NoWorker())))


@pytest.mark.parametrize("name", ["profile", "stages", "task"])
def test_what_is_about_single_inferences_says_so_and_starts_no_worker(
    name: str, tmp_path: Path
) -> None:
    case = generating(
        stages=str(tmp_path / "stages.py"),
        dataset=Dataset(path="labels.npz"),
    )
    facts = measured(name, case)
    assert "requests" in facts.reason
    assert not facts.interrupted


def test_a_soak_over_sizes_is_none_of_requests() -> None:
    case = generating()
    ids = TensorInfo(name="input_ids", type="tensor(int64)", shape=("batch", "seq"))
    sampling = replace(case.sampling, soak_s=1.0, soak_dims={"seq": (1, 2)})
    case = replace(case, model=replace(case.model, inputs=(ids,)), sampling=sampling)
    facts = measured("soak", case)
    assert "--ort-prompt-tokens" in facts.reason


def test_starts_of_requests_have_no_further_shapes() -> None:
    case = generating()
    longer = replace(case, batch=2, inputs=(*case.inputs, *case.inputs))
    assert further_shapes(case, [longer]) == ()
    assert further_shapes(replace(case, generation=None), [replace(longer, generation=None)])
