"""Engines: a folder for each case, built by the first worker and loaded by the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime, SessionConfig
from pytest_ortbench.core.model import Model, ValueHint, Variant
from pytest_ortbench.worker.engine_cache import cache_key, with_cache

TENSORRT = Provider(alias="tensorrt", name="TensorrtExecutionProvider")
X = InputSpec(name="x", type="tensor(float)", shape=(1, 3), hint=ValueHint(kind="normal"))
CASE = Case(
    model=Model(name="m", path="/m.onnx", source="file", digest="aa", size_bytes=1),
    variant=Variant(precision="native", path="/m.onnx", digest="aa", size_bytes=1),
    provider=TENSORRT,
    inputs=(X,),
)


def test_the_first_worker_builds_and_the_others_load(tmp_path: Path) -> None:
    provider, state = with_cache(CASE, str(tmp_path))
    folder = provider.options["trt_engine_cache_path"]
    assert state == "cold"
    assert provider.options == {
        "trt_engine_cache_enable": "True",
        "trt_engine_cache_path": folder,
        "trt_timing_cache_enable": "True",
        "trt_timing_cache_path": folder,
    }
    assert Path(folder).parent == tmp_path
    (Path(folder) / "graph_sm90.engine").touch()
    again, state = with_cache(CASE, str(tmp_path))
    assert (again, state) == (provider, "warm")


@pytest.mark.parametrize(
    "other",
    [
        replace(CASE, variant=replace(CASE.variant, digest="bb")),
        replace(CASE, variant=replace(CASE.variant, path="/other/m.onnx")),
        replace(CASE, provider=replace(TENSORRT, options={"trt_fp16_enable": "1"})),
        replace(CASE, provider=replace(TENSORRT, device="1", options={"device_id": "1"})),
        replace(CASE, inputs=(replace(X, shape=(8, 3)),)),
        replace(CASE, session=SessionConfig(graph_optimization_level="disable")),
        replace(CASE, runtime=Runtime(label="onnxruntime-gpu-1.20.1")),
        replace(CASE, io="device"),
    ],
)
def test_no_case_finds_the_engine_of_another(tmp_path: Path, other: Case) -> None:
    assert cache_key(other) != cache_key(CASE)
    ours, _ = with_cache(CASE, str(tmp_path))
    Path(ours.options["trt_engine_cache_path"], "engine").touch()
    theirs, state = with_cache(other, str(tmp_path))
    assert state == "cold"
    assert theirs.options["trt_engine_cache_path"] != ours.options["trt_engine_cache_path"]


def test_what_does_not_decide_the_engine_shares_it() -> None:
    assert cache_key(replace(CASE, seed=7, batch=None)) == cache_key(CASE)  # type: ignore[arg-type]


def test_what_the_user_sets_stays(tmp_path: Path) -> None:
    off = replace(CASE, provider=replace(TENSORRT, options={"trt_engine_cache_enable": "0"}))
    assert with_cache(off, str(tmp_path)) == (off.provider, "none")
    mine = tmp_path / "mine"
    options = {"trt_engine_cache_enable": "1", "trt_engine_cache_path": str(mine)}
    own = replace(CASE, provider=replace(TENSORRT, options=options))
    assert with_cache(own, str(tmp_path)) == (own.provider, "cold")
    mine.mkdir()
    (mine / "old.engine").touch()
    assert with_cache(own, str(tmp_path)) == (own.provider, "warm")


def test_others_have_none(tmp_path: Path) -> None:
    cpu = replace(CASE, provider=Provider(alias="cpu", name="CPUExecutionProvider"))
    assert with_cache(cpu, str(tmp_path)) == (cpu.provider, "none")
    assert with_cache(CASE, "") == (TENSORRT, "none")
    assert list(tmp_path.iterdir()) == []
