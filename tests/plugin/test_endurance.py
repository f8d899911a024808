"""A service that a run starts and keeps under load: nothing is lost, and its memory stays."""

from __future__ import annotations

import json

import pytest

from tests.launch.cases import relu
from tests.serving.started import free_port

from .conftest import QUICK

#: Memory that a service may take in the minute of a test once it has warmed up: buffers of its
#: connections, and no more however many requests come.
NOISE_BYTES = 16 << 20


def test_a_service_of_the_run_loses_nothing_under_a_steady_load(
    pytester: pytest.Pytester,
) -> None:
    relu(pytester.path / "relu.onnx")
    pytester.runpytest(
        "relu.onnx",
        "--ort-serve=reference",
        f"--ort-serve-port={free_port()}",
        "--ort-providers=endpoint",
        "--ort-endurance=60s",
        "--ort-endurance-rate=25",
        "--ort-endurance-faults=malformed,oversized,slow",
        "--ort-json=out.json",
        "-k", "test_latency",
        *QUICK,
    )  # fmt: skip
    document = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    (case,) = document["cases"]
    found = case["endurance"]
    assert found["reason"] == ""
    exchanges = found["exchanges"]
    assert exchanges["sent"] > 1000
    assert exchanges["failed"] == {}
    assert (exchanges["compared"], exchanges["compared_with"]) == (exchanges["sent"], "reference")
    answers = {fault["kind"]: {*fault["answers"]} for fault in found["faults"]}
    assert answers["malformed"] == {"400"}
    assert answers["oversized"] == {"413"}
    assert answers["slow"] <= {"400", "408", "none"}
    settled = found["resident_bytes"][len(found["resident_bytes"]) // 4 :]
    assert max(settled) - settled[0] < NOISE_BYTES
    # What the client takes is not that of the service.
    assert case["soak"] is None
