"""The shipped test of requests, and what a marker asks of them."""

from __future__ import annotations

import pytest

from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.marker import MarkerError, MarkerValues, read_marker


def collected(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    result = pytester.runpytest(
        "--collect-only", "-q", "--ort-providers=cpu", "--pyargs", *arguments
    )
    return [line for line in result.outlines if "test_generation[" in line]


def test_the_shipped_test_is_there_for_models_that_write(pytester: pytest.Pytester) -> None:
    suites = ("pytest_ortbench.suites", "--ort-models=builtin:decoder,builtin:linear")
    (written,) = collected(pytester, *suites)
    assert "decoder/native/cpu/b1/workload:generate/" in written
    assert len(collected(pytester, *suites, "--ort-depth=0:64")) == 2
    assert not collected(pytester, *suites, "--ort-generate=off")


def read(**keywords: object) -> MarkerValues:
    mark = pytest.mark.ortbench(**keywords).mark
    return read_marker([mark], place="test_x.py::test_it", folders=())


def test_a_marker_asks_for_lengths_and_for_nothing_but_requests() -> None:
    values = read(generate="only", prompt_tokens=[16, 512], new_tokens=8, depths=[0, 256])
    request = values.apply(PlanRequest(models=("m.onnx",)))
    assert request.generate == "only"
    assert request.prompt_tokens == (16, 512)
    assert request.new_tokens == (8,)
    assert request.depths == (0, 256)


@pytest.mark.parametrize(
    "keywords", [{"generate": "on"}, {"depths": [-1]}, {"new_tokens": [1]}, {"prompt_tokens": 0}]
)
def test_a_marker_that_asks_for_nothing_sensible_is_refused(keywords: dict[str, object]) -> None:
    with pytest.raises(MarkerError):
        read(**keywords)
