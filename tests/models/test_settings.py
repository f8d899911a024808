"""Numbers that set something, held by name, and a flag that follows the workload."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto

from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.models.well_known import Surroundings, by_name
from pytest_ortbench.planning.feeds import resolve_inputs, workloads
from pytest_ortbench.planning.sizes import ModelAxes
from tests.models.graphs import INT64, model, node, read, value, weight

NOTHING = Surroundings(lengths={})


def _held(name: str, shape: tuple[int | str, ...] = (1,), kind: str = "float") -> str | None:
    info = TensorInfo(name=name, type=f"tensor({kind})", shape=shape)
    hint = by_name(info, None, NOTHING)
    return hint.choices[0] if hint is not None and hint.kind == "constant" else None


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, "1") for name in ("speed", "length_scale", "scales", "rate", "speaking_rate")),
        *((name, "1") for name in ("temperature", "downsample_ratio", "noise_scale", "pace")),
        *((name, "1") for name in ("repetition_penalty", "top_p", "pitch_control", "alpha")),
        *((name, "0.5") for name in ("threshold", "iou_threshold", "score_thresh", "confidence")),
        *(("fmin", "50"), ("f_max", "2000"), ("eps", "0.00001")),
    ],
)
def test_settings_change_nothing(name: str, number: str) -> None:
    assert _held(name) == number
    assert _held(name, ()) == number
    assert _held(name, ("batch", 1)) == number


@pytest.mark.parametrize(
    ("name", "number"),
    [("num_beams", "1"), ("top_k", "5"), ("seed", "0"), ("sid", "0"), ("max_length", "160")],
)
def test_settings_that_are_counts(name: str, number: str) -> None:
    assert _held(name, kind="int64") == number


@pytest.mark.parametrize("name", ["x", "image", "style", "speedometer", "grates", "separate"])
def test_other_numbers_are_drawn(name: str) -> None:
    assert _held(name) is None


def test_large_tensors_are_no_settings() -> None:
    assert _held("scale", (1, 256)) is None
    assert _held("scales", ("batch", "channels")) is None


def test_what_consumers_accept_goes_first() -> None:
    info = TensorInfo(name="speed", type="tensor(float)", shape=(1,))
    bounded = ValueHint(kind="uniform", low=1.1, high=2.0, why="Acosh is defined there")
    assert by_name(info, bounded, NOTHING) == bounded
    wide = ValueHint(kind="uniform", low=0.05, high=1.0, why="Log is defined there")
    assert by_name(info, wide, NOTHING) == ValueHint(
        kind="constant", choices=("1",), why="its name: a factor that changes nothing"
    )


def _merged(
    folder: Path, *, past: str = "past_sequence_length", flag: str = "use_cache_branch"
) -> object:
    """A decoder with a branch for the first step, and one for those with a cache."""
    from onnx import helper

    first = helper.make_graph([node("Identity", ["e"], ["a"])], "first", [], [value("a", None)])
    nodes = [node("ReduceMean", ["past_key_values.0.key"], ["m"], axes=[2]),
             node("ReduceMean", ["m"], ["p"], keepdims=0),
             node("Add", ["e", "p"], ["b"])]  # fmt: skip
    later = helper.make_graph(nodes, "later", [], [value("b", None)])
    proto = model(
        [
            node("Gather", ["words", "input_ids"], ["e"]),
            node("If", [flag], ["y"], then_branch=later, else_branch=first),
        ],
        [
            value("input_ids", ["batch", "sequence_length"], INT64),
            value("past_key_values.0.key", ["batch", 4, past, 8]),
            value(flag, [1], TensorProto.BOOL),
        ],
        [value("y", None)],
        [weight("words", 50, 8)],
    )
    return read(proto, folder)


@pytest.mark.live
@pytest.mark.parametrize("past", ["past_sequence_length", "past length", "P"])
def test_the_flag_of_a_cache_follows_the_workload(past: str, tmp_path: Path) -> None:
    found = _merged(tmp_path, past=past)
    fed = {}
    for preset in workloads(ModelAxes(found)):
        specs = {spec.name: spec for spec in resolve_inputs(found, batch=None, dims=preset.dims)}
        cache = specs["past_key_values.0.key"].shape[2]
        fed[preset.name] = (cache, specs["use_cache_branch"].hint.choices)
    assert fed == {"decode": (128, ("1",)), "prefill": (0, ("0",))}


@pytest.mark.live
@pytest.mark.parametrize(
    ("flag", "decode", "prefill"),
    [("use_past", "1", "0"), ("is_incremental", "1", "0"), ("is_first", "0", "1")],
)
def test_other_flags_of_a_cache_follow_it_too(
    flag: str, decode: str, prefill: str, tmp_path: Path
) -> None:
    found = _merged(tmp_path, flag=flag)
    fed = {}
    for preset in workloads(ModelAxes(found)):
        specs = {spec.name: spec for spec in resolve_inputs(found, batch=None, dims=preset.dims)}
        fed[preset.name] = specs[flag].hint.choices
    assert fed == {"decode": (decode,), "prefill": (prefill,)}


@pytest.mark.live
@pytest.mark.parametrize(
    ("shape", "name", "length"),
    [
        (["N", "T", 80], "x_lengths", "128"),
        ([1, 300, 80], "x_len", "300"),
        (["N", 80, "frames"], "seqlen", "100"),
    ],
)
def test_lengths_are_those_of_what_they_describe(
    shape: list[int | str], name: str, length: str, tmp_path: Path
) -> None:
    proto = model(
        [
            node("Cast", [name], ["f"], to=1),
            node("ReduceSum", ["f"], ["s"], keepdims=0),
            node("Add", ["x", "s"], ["y"]),
        ],
        [value("x", shape), value(name, ["M"], INT64)],
        [value("y", None)],
    )
    specs = {spec.name: spec for spec in resolve_inputs(read(proto, tmp_path), batch=None, dims={})}
    assert (specs[name].shape, specs[name].hint.choices) == ((1,), (length,))
