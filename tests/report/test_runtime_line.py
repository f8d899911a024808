"""How a runtime is named under the table."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.report.legend import runtime_line


@pytest.mark.parametrize(
    ("host", "end"),
    [("", ""), ("bench1", ""), ("board", ", on board")],
    ids=["unknown", "here", "elsewhere"],
)
def test_a_runtime_that_ran_elsewhere_names_its_machine(host: str, end: str) -> None:
    info = RuntimeInfo(
        distributions={"onnxruntime": "1.20.1"},
        version="1.20.1",
        python="3.11.7",
        numpy="1.26.4",
        executable="/python",
        host=host,
    )
    line = runtime_line("remote", info, "bench1")
    assert line == f"remote: onnxruntime 1.20.1, Python 3.11.7, numpy 1.26.4{end}"


def test_a_runtime_without_onnx_runtime_says_so() -> None:
    info = RuntimeInfo(
        distributions={}, version="", python="3.11.7", numpy="1.26.4", executable="/python"
    )
    assert runtime_line("engines", info, "here").startswith("engines: without ONNX Runtime, Python")
