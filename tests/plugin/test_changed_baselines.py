"""Documents changed at random as the baseline of a real run, which must keep its results.

``ORTBENCH_TESTS_MUTATIONS=500`` tries that many, in the short form there are ten.
"""

from __future__ import annotations

import os

import pytest

from tests.models.graphs import relu
from tests.mutations.bases import changed_document

from .conftest import QUICK

_COUNT = int(os.environ.get("ORTBENCH_TESTS_MUTATIONS", "10"))


@pytest.mark.parametrize("seed", range(1000, 1000 + _COUNT))
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
