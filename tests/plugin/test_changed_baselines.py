"""Documents changed at random as the baseline of a real run, which must keep its results.

Ten run with the other tests; the other 490 are heavy.
"""

from __future__ import annotations

import pytest

from tests.models.graphs import relu
from tests.mutations.bases import changed_document

from .conftest import QUICK

_FIRST, _SHORT, _ALL = 1000, 10, 500
SEEDS = [
    *range(_FIRST, _FIRST + _SHORT),
    *(
        pytest.param(seed, marks=pytest.mark.heavy)
        for seed in range(_FIRST + _SHORT, _FIRST + _ALL)
    ),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_changed_document_as_a_baseline_costs_no_result(
    pytester: pytest.Pytester, seed: int
) -> None:
    data, change = changed_document(seed)
    (pytester.path / "net.onnx").write_bytes(relu().SerializeToString())
    (pytester.path / "base.json").write_bytes(data)
    result = pytester.runpytest(
        *QUICK, "-k", "test_latency", "--ort-baseline=base.json", "net.onnx"
    )
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text, f"{change}: {text}"
    assert "INTERNALERROR" not in text, f"{change}: {text}"
    if result.ret == pytest.ExitCode.USAGE_ERROR:
        assert "base.json: " in text
    else:
        assert list((pytester.path / "results").glob("*/run.json"))
