"""The ceilings of this machine: measured through real sessions, refused where they can't be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.passes.profile.worker import peak
from pytest_ortbench.passes.profile.worker.peak import _product_model, peak_of
from pytest_ortbench.worker.model_writer import Node, Value, write_model
from tests.launch.cases import case_of, relu
from tests.worker.sessions import cpu_session

pytestmark = pytest.mark.live


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products and few runs: what is tested is not how fast this machine is."""
    monkeypatch.setattr(peak, "_SIDES", (16, 32))
    monkeypatch.setattr(peak, "_PASS_SIDES", (64,))
    monkeypatch.setattr(peak, "_ROUND_NS", 1)


def test_a_written_model_is_what_onnx_reads() -> None:
    content = write_model(
        [Node(op="MatMul", inputs=["x", "w"], output="y")],
        [Value(name="x", element="float", shape=(2, 300))],
        [Value(name="y", element="float", shape=(2, 1))],
        {"w": ("float", np.arange(300, dtype=np.float32).reshape(300, 1))},
        opset=11,
    )
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    (given,) = model.graph.input
    assert [size.dim_value for size in given.type.tensor_type.shape.dim] == [2, 300]
    (result,) = cpu_session(content).run(None, {"x": np.ones((2, 300), dtype=np.float32)})
    assert result.tolist() == [[44_850.0], [44_850.0]]


@pytest.mark.parametrize("element", ["float", "float16", "double", "uint8"])
def test_products_neither_grow_nor_vanish(element: str) -> None:
    model, feeds = _product_model(64, element)
    onnx.checker.check_model(onnx.load_model_from_string(model), full_check=True)
    for result in cpu_session(model).run(None, feeds):
        values = np.asarray(result, dtype=np.float64)
        assert np.isfinite(values).all()
        assert np.abs(values).max() > 0.1


@pytest.mark.parametrize("element", ["float", "uint8"])
def test_both_ceilings_are_measured(element: str, tmp_path: Path, quick: None) -> None:
    found = peak_of(case_of(relu(tmp_path / "m.onnx")), element, threads=1)
    assert found.reason == ""
    assert found.macs_per_s is not None
    assert found.bytes_per_s is not None
    assert found.macs_per_s > 0
    assert found.bytes_per_s > 0
    assert (found.provider, found.element, found.threads) == ("CPUExecutionProvider", element, 1)
    assert found.product in ("16 x 16 x 16", "32 x 32 x 32")


def test_the_rate_is_work_over_the_fastest_time(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 products of 32 a side in 1 µs, a pass that reads and writes 16 KiB in 1 µs."""
    monkeypatch.setattr(peak._Bench, "fastest_ns", lambda *_: 1000)
    found = peak_of(case_of(relu(tmp_path / "m.onnx")), "float", threads=1)
    assert found.macs_per_s == pytest.approx(4 * 32**3 / 1e-6)
    assert found.bytes_per_s == pytest.approx(2 * 16_384 / 1e-6)
    assert (found.product, found.copy_bytes) == ("32 x 32 x 32", 16_384)


def test_no_larger_product_once_a_run_is_long(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak._Bench, "fastest_ns", lambda *_: 50_000_000)
    found = peak_of(case_of(relu(tmp_path / "m.onnx")), "float", threads=1)
    assert found.product == "16 x 16 x 16"


def test_what_can_not_be_had_is_said(tmp_path: Path, quick: None) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    found = peak_of(case, "bfloat16", threads=1)
    assert found.macs_per_s is None
    assert found.reason == "product of bfloat16: numpy has no such type to feed"
    nowhere = peak_of(
        replace(case, provider=Provider(name="CUDAExecutionProvider", alias="cuda")),
        "float",
        threads=1,
    )
    assert (nowhere.macs_per_s, nowhere.bytes_per_s, nowhere.copy_bytes) == (None, None, 0)
    assert nowhere.reason.startswith("product of float: ")
    assert "pass over memory: " in nowhere.reason


def test_each_ceiling_is_the_best_of_several_trials(tmp_path: Path, quick: None) -> None:
    found = peak_of(case_of(relu(tmp_path / "m.onnx")), "float", threads=1)
    assert len(found.macs_trials_per_s) == len(found.bytes_trials_per_s) == 3
    assert found.macs_per_s == max(found.macs_trials_per_s)
    assert found.bytes_per_s == max(found.bytes_trials_per_s)


def test_on_a_device_the_largest_pass_that_there_is_room_for_counts(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak, "_DEVICE_PASS_SIDES", (1024, 512, 256))

    def fastest_ns(bench: object, model: bytes, feeds: dict[str, np.ndarray]) -> int:
        if feeds["x"].shape[0] > 512:
            raise MemoryError("no room")
        return 1000

    monkeypatch.setattr(peak._Bench, "fastest_ns", fastest_ns)
    case = replace(
        case_of(relu(tmp_path / "m.onnx")),
        provider=Provider(alias="cuda", name="CUDAExecutionProvider"),
    )
    found = peak_of(case, "float", threads=1)
    assert (found.copy_bytes, found.reason) == (4 * 512**2, "")
    assert found.bytes_per_s == pytest.approx(2 * 4 * 512**2 / 1e-6)
