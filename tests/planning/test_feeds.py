"""Inputs with every size resolved: one value a symbol, batch axis, defaults, real inputs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.planning.feeds import (
    resolve_inputs,
    workloads,
)
from pytest_ortbench.planning.sizes import ModelAxes, RefusedCombination
from tests.models.graphs import (
    BOOL,
    INT32,
    INT64,
    constant,
    model,
    node,
    read,
    relu,
    run,
    value,
    weight,
)
from tests.refused import refused

FLOAT_TYPE, INT_TYPE = "tensor(float)", "tensor(int64)"


def tensor(
    name: str,
    *shape: int | str | None,
    type: str = FLOAT_TYPE,
    hint: ValueHint | None = None,
    batch_axis: int | None = None,
) -> TensorInfo:
    return TensorInfo(name=name, type=type, shape=shape, hint=hint, batch_axis=batch_axis)


def described(*inputs: TensorInfo, **fields: object) -> Model:
    base = {"name": "m", "path": "/m.onnx", "source": "file", "digest": "0", "size_bytes": 1}
    return Model(inputs=inputs, **{**base, **fields})  # type: ignore[arg-type]


def shapes(
    found: Model, *, batch: int = 1, dims: Mapping[str, int] | None = None
) -> list[tuple[int, ...]]:
    return [spec.shape for spec in resolve_inputs(found, batch=batch, dims=dims or {})]


def spec_of(specs: tuple[InputSpec, ...], name: str) -> InputSpec:
    return next(spec for spec in specs if spec.name == name)


# -- symbols ---------------------------------------------------------------------------------------


def test_one_symbol_has_one_size_in_all_inputs() -> None:
    found = described(
        tensor("input_ids", "batch", "seq", type=INT_TYPE),
        tensor("attention_mask", "batch", "seq", type=INT_TYPE),
    )
    assert ModelAxes(found).symbols == ("batch", "seq")
    assert shapes(found, batch=2, dims={"seq": 512}) == [(2, 512), (2, 512)]
    assert shapes(found) == [(1, 128), (1, 128)]


def test_how_each_size_came_about_is_said() -> None:
    found = described(
        tensor("x", "N", "K", "S", None, "rows", "2*S"),
        default_dims={"rows": 9},
        implied_dims={"K": 5},
    )
    (spec,) = resolve_inputs(found, batch=3, dims={"S": 7})
    assert spec.shape == (3, 5, 7, 16, 9, 14)
    assert [(size.symbol, size.size, size.origin, size.how) for size in spec.resolved] == [
        ("N", 3, "batch", "batch axis"),
        ("K", 5, "graph", "fixed by a consumer in the graph"),
        ("S", 7, "dims", "--ort-dims"),
        ("x_dim_3", 16, "default", "default: its meaning is not stated"),
        ("rows", 9, "catalogue", "catalogue"),
        ("2*S", 14, "computed", "computed"),
    ]


def test_precedence() -> None:
    found = described(
        tensor("x", "batch", "seq"), default_dims={"seq": 40}, implied_dims={"seq": 50}
    )
    assert shapes(found) == [(1, 40)]
    assert shapes(found, dims={"seq": 60}) == [(1, 60)]
    assert shapes(found, batch=2, dims={"batch": 5}) == [(5, 40)]
    assert ModelAxes(found).batch_of(2, {"batch": 5}) == 5
    assert ModelAxes(found).batch_of(2, {"seq": 5}) == 2


def test_unset_minus_one_and_zero(tmp_path: Path) -> None:
    """Relu on [N, unset, -1, 0, 4]."""
    proto = relu(["N", None, None, 0, 4])
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -1
    proto.graph.output[0].CopyFrom(proto.graph.input[0])
    proto.graph.output[0].name = "y"
    found = read(proto, tmp_path)
    assert ModelAxes(found).symbols == ("N", "x_dim_1", "x_dim_2")
    with pytest.raises(RefusedCombination) as caught:
        resolve_inputs(found, batch=1, dims={})
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unsupported", "inputs")
    for part in ("axis 3 ", "'x'", "size 0, "):
        assert part in failure.message


@pytest.mark.live
def test_unset_axes_can_be_set(tmp_path: Path) -> None:
    found = read(relu(["N", None, None, 4]), tmp_path)
    feeds, _ = run(found, batch=2, dims={"x_dim_1": 5, "x_dim_2": 6})
    assert feeds["x"].shape == (2, 5, 6, 4)


def test_zero_columns_are_not_timed() -> None:
    with pytest.raises(RefusedCombination, match="size 0"):
        resolve_inputs(described(tensor("x", 0, 1030)), batch=1, dims={})


def test_zero_by_option_is_refused_too() -> None:
    with refused(RefusedCombination, "(--ort-dims=S:0)"):
        resolve_inputs(described(tensor("x", "N", "S")), batch=1, dims={"S": 0})


def test_unknown_dimension_names_the_known_ones() -> None:
    with refused(UsageError, "'sequ'", place="--ort-dims", hint="'seq'"):
        resolve_inputs(described(tensor("x", "batch", "seq")), batch=1, dims={"sequ": 3})
    with refused(UsageError, "'seq'", place="--ort-dims", hint="--ort-dims"):
        resolve_inputs(described(tensor("x", 1, 3)), batch=1, dims={"seq": 3})


def test_expressions_over_symbols() -> None:
    found = described(
        tensor("input_ids", "B", "S", type=INT_TYPE),
        tensor("mask", "B", "P+S", type=INT_TYPE),
        tensor("half", "B", "S//2"),
        tensor("odd", "B", "seq-len"),
    )
    assert ModelAxes(found).symbols == ("B", "S", "P", "seq-len")
    assert shapes(found, dims={"P": 10, "S": 6, "seq-len": 4}) == [(1, 6), (1, 16), (1, 3), (1, 4)]


def test_size_below_zero_is_refused() -> None:
    found = described(tensor("a", "B", "S"), tensor("b", "B", "S - 10"))
    with refused(RefusedCombination, "-5"):
        resolve_inputs(found, batch=1, dims={"S": 5})


def test_size_that_is_no_whole_number_is_refused() -> None:
    found = described(tensor("a", "B", "S"), tensor("b", "B", "S/2 + 0"))
    with refused(RefusedCombination, "S/2 + 0"):
        resolve_inputs(found, batch=1, dims={"S": 5})


def test_giant_inputs_are_refused() -> None:
    found = described(tensor("x", "N", "H", "W"))
    with refused(RefusedCombination, "37.3 GiB"):
        resolve_inputs(found, batch=1, dims={"H": 100_000, "W": 100_000})


@pytest.mark.parametrize(
    ("inputs", "dims"),
    [
        ([tensor("x", "N", "S")], {"S": 0}),
        ([tensor("a", "B", "S"), tensor("b", "B", "S - 10")], {"S": 5}),
        ([tensor("a", "B", "S"), tensor("b", "B", "S/2 + 0")], {"S": 5}),
        ([tensor("x", "N", "H", "W")], {"H": 100_000, "W": 100_000}),
        ([tensor("x", 1, "h*1000000000")], {"h": 1000}),
    ],
    ids=["empty", "below zero", "no whole number", "giant", "giant by a factor"],
)
def test_a_refusal_comes_with_sizes_that_can_be_fed(
    inputs: list[TensorInfo], dims: dict[str, int]
) -> None:
    with pytest.raises(RefusedCombination) as raised:
        resolve_inputs(described(*inputs), batch=1, dims=dims)
    written = raised.value.hint.partition("--ort-dims=")[2]
    assert bool(written) is (dims != {"h": 1000})  # a billion elements are too many anyway
    if written:
        advised = {name: int(size) for name, size in (s.split(":") for s in written.split(","))}
        assert resolve_inputs(described(*inputs), batch=1, dims={**dims, **advised})


def test_a_giant_batch_is_made_smaller_where_it_was_set() -> None:
    found = described(tensor("x", "N", 3, 224, 224))
    with pytest.raises(RefusedCombination) as raised:
        resolve_inputs(found, batch=100_000, dims={})
    option, _, size = raised.value.hint.rpartition("=")
    assert option.endswith("--ort-batch-sizes")
    assert resolve_inputs(found, batch=int(size), dims={})
    wide = described(tensor("x", "N", "W"))
    with refused(RefusedCombination, hint=" --ort-dims=W:"):
        resolve_inputs(wide, batch=100_000, dims={"W": 100_000})
    with refused(RefusedCombination, hint="--ort-dims=N:"):
        resolve_inputs(found, batch=1, dims={"N": 100_000})


def test_a_giant_input_of_fixed_sizes_can_be_given() -> None:
    """No limit is set to what a file holds."""
    with refused(RefusedCombination, "128.0 GiB", hint="--ort-inputs"):
        resolve_inputs(described(tensor("x", 1, 8, 65536, 65536)), batch=None, dims={})


def test_a_batch_of_unknown_axes_needs_inputs_that_are_not_given_yet(tmp_path: Path) -> None:
    found = described(TensorInfo(name="x", type=FLOAT_TYPE, shape=None))
    with refused(RefusedCombination, "'x'", hint="--ort-inputs"):
        resolve_inputs(found, batch=8, dims={})
    np.savez(tmp_path / "d.npz", x=np.zeros((2, 3), np.float32))
    with pytest.raises(RefusedCombination) as raised:
        resolve_inputs(found, batch=8, dims={}, inputs_path=tmp_path / "d.npz")
    assert "--ort-inputs" not in raised.value.hint


# -- batch axis ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "symbols"),
    [
        ([tensor("x", "batch", 3)], ("batch",)),
        ([tensor("x", "S", "B", 3)], ("B",)),
        ([tensor("x", "N", 3, 224, 224)], ("N",)),
        ([tensor("x", "unk__7", 3)], ("unk__7",)),
        ([tensor("x", None, 3), tensor("y", None, 4)], ("x_dim_0", "y_dim_0")),
        ([tensor("x", "batch_size", 3), tensor("y", None, 4)], ("batch_size", "y_dim_0")),
        ([tensor("x", None, None, 3, batch_axis=1)], ("x_dim_1",)),
        ([tensor("x", None, 8), tensor("state", 2, None, 8)], ("x_dim_0", "state_dim_1")),
        ([tensor("x", "seq", 8)], ()),
        ([tensor("x", 1, "width")], ()),
        ([tensor("x", "rows")], ("rows",)),
        ([tensor("x")], ()),
        ([tensor("points", "B", 3, "N")], ("B",)),
        ([tensor("x", "T", "N", 40)], ("N",)),
        (
            [tensor("image", "image_batch", 3), tensor("text", "text_batch", "S")],
            ("image_batch", "text_batch"),
        ),
        ([tensor("x", "B", 3), tensor("lens", "B", type=INT_TYPE)], ("B",)),
    ],
)
def test_which_symbols_are_the_batch(inputs: list[TensorInfo], symbols: tuple[str, ...]) -> None:
    assert ModelAxes(described(*inputs)).batch_axis.symbols == symbols


def test_fixed_batch_is_refused_for_others() -> None:
    found = described(tensor("x", 1, 3, "H", "W"))
    assert shapes(found) == [(1, 3, 224, 224)]
    with pytest.raises(RefusedCombination) as caught:
        resolve_inputs(found, batch=4, dims={})
    assert caught.value.failure.kind == "unsupported"
    assert "axis 0 of 'x'" in caught.value.failure.message


def test_images_of_a_fixed_larger_batch() -> None:
    found = described(tensor("x", 8, 3, 32, 32))
    assert shapes(found, batch=8) == [(8, 3, 32, 32)]
    with pytest.raises(RefusedCombination, match="--ort-batch-sizes=8"):
        resolve_inputs(found, batch=1, dims={})


def test_matrix_without_batch_runs_at_batch_1_only() -> None:
    found = described(tensor("x", 512, 512))
    assert shapes(found) == [(512, 512)]
    with pytest.raises(RefusedCombination, match="fixed to 512"):
        resolve_inputs(found, batch=2, dims={})


def test_no_batch_axis_at_all() -> None:
    found = described(tensor("x", "seq"), tensor("flag"))
    assert shapes(found) == [(128,), ()]
    with refused(RefusedCombination, "batch axis"):
        resolve_inputs(found, batch=2, dims={})


@pytest.mark.live
def test_reshape_to_a_constant_is_left_to_the_runtime(tmp_path: Path) -> None:
    """x:[B,6] -> Reshape to [1,2,3]: batch 1 runs, batch 2 fails there, not here."""
    proto = model(
        [node("Reshape", ["x", "shape"], ["y"])],
        [value("x", ["B", 6])],
        [value("y", None)],
        [constant("shape", [1, 2, 3])],
    )
    found = read(proto, tmp_path)
    _, (output,) = run(found, batch=1)
    assert output.shape == (1, 2, 3)
    assert shapes(found, batch=2) == [(2, 6)]
    with pytest.raises(Exception, match=r"reshape|Reshape"):
        run(found, batch=2)


# -- documented defaults ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "shape"),
    [
        (tensor("x", "N", 3, "H", "W"), (1, 3, 224, 224)),
        (tensor("x", None, None, None, None), (1, 3, 224, 224)),
        (tensor("x", "N", None, None, 3), (1, 224, 224, 3)),
        (tensor("x", "N", "height", "width", 1), (1, 224, 224, 1)),
        (tensor("x", "N", 3, "depth_x", "img_h", "img_w"), (1, 3, 16, 224, 224)),
        (tensor("ids", "N", None, type=INT_TYPE), (1, 128)),
        (tensor("ids", "N", "sequence_length", type=INT_TYPE), (1, 128)),
        (tensor("x", "N", "encoder_sequence_length", 64), (1, 128, 64)),
        (tensor("wave", "N", "num_samples"), (1, 16_000)),
        (tensor("mel", "N", 80, "frames"), (1, 80, 100)),
        (tensor("x", "S", "B", 3), (128, 1, 3)),
        (tensor("past_key_values.0.key", "B", 4, "past_sequence_length", 8), (1, 4, 128, 8)),
    ],
)
def test_defaults(info: TensorInfo, shape: tuple[int, ...]) -> None:
    assert shapes(described(info)) == [shape]


@pytest.mark.live
def test_image_model_runs_at_its_default_size(tmp_path: Path) -> None:
    proto = model(
        [node("Conv", ["x", "w"], ["c"]), node("GlobalAveragePool", ["c"], ["y"])],
        [value("x", [None, None, None, None])],
        [value("y", None)],
        [weight("w", 4, 3, 3, 3)],
    )
    feeds, _ = run(read(proto, tmp_path), batch=2)
    assert feeds["x"].shape == (2, 3, 224, 224)


def test_unknown_rank_asks_for_real_inputs() -> None:
    info = TensorInfo(name="x", type=FLOAT_TYPE, shape=None)
    with refused(RefusedCombination, "'x'", hint="--ort-inputs"):
        resolve_inputs(described(info), batch=1, dims={})


# -- hints -----------------------------------------------------------------------------------------


def test_bounds_are_concrete_once_sizes_are_known() -> None:
    found = described(
        tensor("x", "B", "S"),
        tensor("i", "B", type=INT_TYPE, hint=ValueHint(kind="integers", high_dim="B - 1")),
        tensor("j", "B", type=INT_TYPE, hint=ValueHint(kind="integers", high_dim="unk_9 - 1")),
        tensor("k", 1, type=INT_TYPE, hint=ValueHint(kind="constant", choices=("min(5, S)", "S"))),
    )
    specs = resolve_inputs(found, batch=4, dims={"S": 3})
    assert (spec_of(specs, "i").hint.low, spec_of(specs, "i").hint.high) == (0, 3)
    # A symbol of an intermediate value has no size: only the first row is safe.
    assert (spec_of(specs, "j").hint.low, spec_of(specs, "j").hint.high) == (0, 0)
    assert spec_of(specs, "k").hint.choices == ("3", "3")
    assert all(not spec.hint.high_dim and not spec.hint.low_dim for spec in specs)


def test_positions_past_the_end_of_their_table_are_refused() -> None:
    hint = ValueHint(kind="arange", high=511, why="positions, within Gather(table)")
    found = described(tensor("position_ids", "B", "S", type=INT_TYPE, hint=hint))
    assert shapes(found, dims={"S": 512}) == [(1, 512)]
    with refused(RefusedCombination, "599", "511", hint="--ort-dims=S:512"):
        resolve_inputs(found, batch=1, dims={"S": 600})
    # The size of the axis is made of several: that of one is lowered until all fit.
    joined = described(tensor("position_ids", "B", "P + S", type=INT_TYPE, hint=hint))
    with refused(RefusedCombination, hint="--ort-dims=S:412"):
        resolve_inputs(joined, batch=1, dims={"P": 100, "S": 600})
    fixed = described(tensor("position_ids", "B", 600, type=INT_TYPE, hint=hint))
    with refused(RefusedCombination, hint="Export"):
        resolve_inputs(fixed, batch=1, dims={})


# -- decoders --------------------------------------------------------------------------------------


def decoder(total: str = "P+S") -> onnx.ModelProto:
    """One attention-like step: the cache is joined with the new keys along axis 2."""
    nodes = [
        node("Gather", ["table", "input_ids"], ["e"]),
        node("Reshape", ["e", "shape"], ["r"]),
        node("Transpose", ["r"], ["new"], perm=[0, 2, 1, 3]),
        node("Concat", ["past.0.key", "new"], ["present.0.key"], axis=2),
        node("ReduceSum", ["present.0.key", "axes"], ["s"], keepdims=0),
        node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT),
        node("Mul", ["s", "m"], ["y"]),
        node("Gather", ["positions", "position_ids"], ["p"]),
    ]
    inputs = [
        value("input_ids", ["B", "S"], INT64),
        value("attention_mask", ["B", total], INT64),
        value("position_ids", ["B", "S"], INT64),
        value("past.0.key", ["B", 2, "P", 4]),
    ]
    outputs = [value("y", None), value("present.0.key", None), value("p", None)]
    weights = [
        weight("table", 50, 8),
        weight("positions", 512, 8),
        constant("shape", [0, -1, 2, 4]),
        constant("axes", [1, 3]),
    ]
    return model(nodes, inputs, outputs, weights)


@pytest.mark.live
@pytest.mark.parametrize("total", ["P+S", "P + S", "total_sequence_length"])
def test_decoder_decodes_one_token_after_128(tmp_path: Path, total: str) -> None:
    found = read(decoder(total), tmp_path)
    feeds, outputs = run(found, batch=2)
    assert {name: array.shape for name, array in feeds.items()} == {
        "input_ids": (2, 1),
        "attention_mask": (2, 129),
        "position_ids": (2, 1),
        "past.0.key": (2, 2, 128, 4),
    }
    assert feeds["attention_mask"].min() == 1
    assert feeds["position_ids"].tolist() == [[128], [128]]
    assert feeds["past.0.key"].std() > 0.5
    assert outputs[1].shape == (2, 2, 129, 4)


@pytest.mark.live
def test_decoder_has_two_workloads(tmp_path: Path) -> None:
    found = read(decoder(), tmp_path)
    decode, prefill = workloads(ModelAxes(found))
    assert (decode.name, decode.dims) == ("decode", {"S": 1, "P": 128})
    assert (prefill.name, prefill.dims) == ("prefill", {"S": 128, "P": 1})
    assert "one token" in prefill.note
    feeds, _ = run(found, dims=prefill.dims)
    assert feeds["input_ids"].shape == (1, 128)
    assert feeds["attention_mask"].shape == (1, 129)


@pytest.mark.live
def test_documented_workload_may_have_an_empty_cache(tmp_path: Path) -> None:
    from dataclasses import replace

    presets = {"decode": {"S": 1, "P": 127}, "prefill": {"S": 64, "P": 0}}
    found = replace(read(decoder(), tmp_path), workloads=presets)
    assert [item.name for item in workloads(ModelAxes(found))] == ["decode", "prefill"]
    feeds, outputs = run(found, dims=presets["prefill"])
    assert feeds["past.0.key"].shape == (1, 2, 0, 4)
    assert feeds["position_ids"].tolist() == [list(range(64))]
    assert outputs[0].shape == (1, 64)


def test_models_without_cache_have_no_workloads() -> None:
    assert workloads(ModelAxes(described(tensor("x", "B", "S")))) == ()


def test_optimum_names_of_a_decoder() -> None:
    found = described(
        tensor("input_ids", "batch_size", "sequence_length", type=INT_TYPE),
        tensor("attention_mask", "batch_size", "past_sequence_length + 1", type=INT_TYPE),
        tensor("past_key_values.0.key", "batch_size", 8, "past_sequence_length", 64),
    )
    assert shapes(found) == [(1, 1), (1, 129), (1, 8, 128, 64)]
    assert workloads(ModelAxes(found))[0].dims == {
        "sequence_length": 1,
        "past_sequence_length": 128,
    }


# -- real inputs -----------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Model:
    proto = model(
        [node("Cast", ["ids"], ["c"], to=TensorProto.FLOAT), node("Add", ["c", "x"], ["y"])],
        [value("ids", ["B", "S"], INT64), value("x", ["B", "S"])],
        [value("y", None)],
    )
    return read(proto, tmp_path, "pair")


def arrays(batch: int = 1, length: int = 5) -> dict[str, np.ndarray]:
    return {
        "ids": np.arange(batch * length, dtype=np.int64).reshape(batch, length),
        "x": np.full((batch, length), 0.5, np.float32),
    }


@pytest.mark.live
def test_npz(pair: Model, tmp_path: Path) -> None:
    path = tmp_path / "real.npz"
    np.savez(path, **arrays(2))
    specs = resolve_inputs(pair, batch=2, dims={}, inputs_path=path)
    assert [(spec.shape, spec.path, spec.member) for spec in specs] == [
        ((2, 5), str(path), "ids"),
        ((2, 5), str(path), "x"),
    ]
    assert [(size.symbol, size.size, size.origin) for size in specs[0].resolved] == [
        ("B", 2, "batch"), ("S", 5, "file"),
    ]  # fmt: skip
    assert specs[0].sizes_text.split("; ")[1] == "S=5 (in real.npz)"
    _, (output,) = run(pair, batch=2, inputs_path=path)
    assert output[1].tolist() == [5.5, 6.5, 7.5, 8.5, 9.5]


@pytest.mark.live
def test_folder_of_npy(pair: Model, tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    for name, array in arrays().items():
        np.save(folder / f"{name}.npy", array)
    _, (output,) = run(pair, inputs_path=folder)
    assert output.tolist() == [[0.5, 1.5, 2.5, 3.5, 4.5]]


@pytest.mark.live
def test_onnx_test_data_set(pair: Model, tmp_path: Path) -> None:
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    for number, array in enumerate(arrays().values()):
        proto = numpy_helper.from_array(array)
        (folder / f"input_{number}.pb").write_bytes(proto.SerializeToString())
    (folder / "output_0.pb").write_bytes(b"")
    specs = resolve_inputs(pair, batch=1, dims={}, inputs_path=folder)
    assert [Path(spec.path).name for spec in specs] == ["input_0.pb", "input_1.pb"]
    _, (output,) = run(pair, inputs_path=folder)
    assert output.tolist() == [[0.5, 1.5, 2.5, 3.5, 4.5]]


def test_a_file_of_onnx_test_data_beyond_the_inputs_is_counted(pair: Model, tmp_path: Path) -> None:
    proto = numpy_helper.from_array(next(iter(arrays().values())))
    (tmp_path / "input_2.pb").write_bytes(proto.SerializeToString())
    with refused(UsageError, "input_2.pb", "number 3", "2 inputs", place="--ort-inputs"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path)


def test_single_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    found = read(relu(["N", 4]), tmp_path)
    (spec,) = resolve_inputs(found, batch=3, dims={}, inputs_path=tmp_path / "x.npy")
    assert (spec.shape, spec.member) == ((3, 4), "")


def test_values_are_not_loaded(tmp_path: Path) -> None:
    """Only the header is there: reading more would fail."""
    path = tmp_path / "x.npy"
    np.save(path, np.ones((3, 4), np.float32))
    path.write_bytes(path.read_bytes()[:128])
    found = read(relu(["N", 4]), tmp_path)
    assert resolve_inputs(found, batch=3, dims={}, inputs_path=path)[0].shape == (3, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "no array for 'x', which model 'pair' needs"),
        ({"extra": np.ones(3)}, "contains the array 'extra', but"),
        ({"x": np.ones((1, 5))}, r"'x' is tensor\(float\).*contains tensor\(double\)"),
        ({"x": np.ones((1, 5, 1), np.float32)}, "must have 2 axes"),
        ({"x": np.array([[None] * 5])}, "the array 'x' in .* contains pickled Python objects"),
    ],
)
def test_real_inputs_that_do_not_fit(
    pair: Model, tmp_path: Path, change: dict[str, np.ndarray | None], message: str
) -> None:
    path = tmp_path / "real.npz"
    content = {k: v for k, v in {**arrays(), **change}.items() if v is not None}
    np.savez(path, **content)
    with pytest.raises(UsageError, match=message) as caught:
        resolve_inputs(pair, batch=1, dims={}, inputs_path=path)
    assert str(caught.value).startswith("--ort-inputs: ")


def test_fixed_axis_shows_fed_beside_declared(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.ones((1, 5), np.float32))
    with refused(UsageError, "[1, 5]", "[N, 4]", "axis 1 ", place="--ort-inputs"):
        resolve_inputs(read(relu(["N", 4]), tmp_path), batch=1, dims={}, inputs_path=path)


def test_another_batch_or_size_than_asked_is_refused(pair: Model, tmp_path: Path) -> None:
    path = tmp_path / "real.npz"
    np.savez(path, **arrays(3))
    with pytest.raises(RefusedCombination, match="--ort-batch-sizes=3"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=path)
    with pytest.raises(RefusedCombination, match="--ort-dims=S:5") as caught:
        resolve_inputs(pair, batch=3, dims={"S": 6}, inputs_path=path)
    assert "S = 6" in caught.value.hint
    # The model has one workload.
    assert "workload" not in caught.value.message


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 broken"])
def test_broken_npz(pair: Model, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "real.npz"
    path.write_bytes(content)
    with refused(UsageError, str(path), place="--ort-inputs"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=path)


def test_nothing_there_and_nothing_known(pair: Model, tmp_path: Path) -> None:
    with refused(UsageError, str(tmp_path / "nothing"), place="--ort-inputs"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with refused(UsageError, str(tmp_path / "empty"), place="--ort-inputs", hint=".npy"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / "empty")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.webp").write_bytes(b"RIFF")
    with refused(UsageError, ".webp", place="--ort-inputs", hint="JPEG"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / "photos")
    (tmp_path / "photos" / "cat.webp").rename(tmp_path / "photos" / "ids.csv")
    with refused(UsageError, ".csv", place="--ort-inputs", hint="x.npy"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / "photos")
    (tmp_path / "x.csv").write_text("1")
    with refused(UsageError, str(tmp_path / "x.csv"), place="--ort-inputs", hint=".npz"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["cat.jpg", "tone.WAV", "input_0.pb"])
def test_a_single_file_of_those_of_a_folder_names_the_folder(
    pair: Model, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"")
    with refused(UsageError, name, place="--ort-inputs", hint=str(tmp_path)):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / name)


def test_a_pointer_of_git_lfs_is_no_damaged_file(pair: Model, tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"
    for name in ("real.npz", "test_data_set_0/input_0.pb", "arrays/x.npy"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(pointer)
        path = file if file.parent == tmp_path else file.parent
        with refused(UsageError, str(file), place="--ort-inputs", hint="git lfs pull"):
            resolve_inputs(pair, batch=1, dims={}, inputs_path=path)


def test_an_object_that_is_no_array_is_not_to_be_converted(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", {"x": 1})  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        resolve_inputs(
            read(relu(["N", 4]), tmp_path), batch=1, dims={}, inputs_path=tmp_path / "x.npy"
        )
    assert "astype" not in caught.value.hint
    assert str(tmp_path / "x.npy") in caught.value.message


def test_a_file_of_test_data_with_a_wrong_number_is_renamed(tmp_path: Path) -> None:
    model = read(relu(["N", 4]), tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "input_1.pb").write_bytes(b"")
    with refused(UsageError, "input_1.pb", hint="to input_0.pb"):
        resolve_inputs(model, batch=1, dims={}, inputs_path=folder)
    (folder / "input_0.pb").write_bytes(
        numpy_helper.from_array(np.ones((1, 4), np.float32)).SerializeToString()
    )
    with refused(UsageError, "input_1.pb", hint="Remove"):
        resolve_inputs(model, batch=1, dims={}, inputs_path=folder)


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ("x arr_0", "Rename 'arr_0' to 'ids'"),
        ("x idss labels", "Rename 'idss' to 'ids', and remove 'labels'"),
        ("arr_0 arr_1", "Give the inputs these names: 'ids', 'x'"),
        ("x ids labels", "Remove 'labels'. If it is the expected output, rename it to 'y'"),
        ("x ids y labels", "Remove 'labels'"),
        ("x ids frames labels", "Remove 'frames', 'labels'"),
    ],
)
def test_arrays_of_other_names_are_renamed_or_removed(
    pair: Model, tmp_path: Path, names: str, hint: str
) -> None:
    """What is advised is what the model lacks: never a name that is there already."""
    path = tmp_path / "real.npz"
    held = dict.fromkeys(names.split(), np.ones((1, 5), np.float32))
    np.savez(path, **{**held, **{k: v for k, v in arrays().items() if k in held}})
    with refused(UsageError, str(path), place="--ort-inputs") as caught:
        resolve_inputs(pair, batch=1, dims={}, inputs_path=path)
    assert caught.value.hint == hint


def test_a_file_of_another_name_is_renamed_as_a_file(pair: Model, tmp_path: Path) -> None:
    for name in ("x", "input_ids"):
        np.save(tmp_path / f"{name}.npy", np.ones((1, 5), np.float32))
    with refused(UsageError, "input_ids.npy", hint="Rename input_ids.npy to ids.npy"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path)


@pytest.mark.parametrize(
    ("name", "hint"), [("ids.npy", "the file x.npy "), ("input_0.pb", "the file input_1.pb ")]
)
def test_a_file_that_is_missing_in_a_folder_is_named(
    pair: Model, tmp_path: Path, name: str, hint: str
) -> None:
    if name.endswith(".npy"):
        np.save(tmp_path / name, arrays()["ids"])
    else:
        first = numpy_helper.from_array(arrays()[pair.inputs[0].name])
        (tmp_path / name).write_bytes(first.SerializeToString())
    with refused(UsageError, place="--ort-inputs", hint=hint):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path)


def test_a_file_that_may_not_be_read_is_no_damaged_one(
    pair: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(zipfile, "ZipFile", denied)
    with refused(UsageError, "Permission denied", hint="the right to read"):
        resolve_inputs(pair, batch=1, dims={}, inputs_path=tmp_path / "real.npz")


@pytest.mark.live
def test_text_and_bool_files(tmp_path: Path) -> None:
    proto = model(
        [node("Identity", ["t"], ["u"]), node("Not", ["b"], ["c"])],
        [value("t", ["N"], TensorProto.STRING), value("b", ["N"], BOOL)],
        [value("u", None, TensorProto.STRING), value("c", None, BOOL)],
    )
    path = tmp_path / "real.npz"
    np.savez(path, t=np.array(["é", "b"]), b=np.array([True, False]))
    _, (texts, flags) = run(read(proto, tmp_path), batch=2, inputs_path=path)
    assert texts.tolist() == ["é", "b"]
    assert flags.tolist() == [False, True]


# -- the voice activity model ----------------------------------------------------------------------


@pytest.mark.live
def test_state_and_rank_0_scalar_are_fed(tmp_path: Path) -> None:
    nodes = [
        node("Unsqueeze", ["input", "zero"], ["x"]),
        node("Split", ["state"], ["h", "c"], axis=0),
        node("LSTM", ["x", "w", "r", "", "", "h", "c"], ["", "hn", "cn"], hidden_size=128),
        node("Concat", ["hn", "cn"], ["stateN"], axis=0),
        node("Identity", ["sr"], ["rate"]),
    ]
    proto = model(
        nodes,
        [value("input", [None, 64]), value("state", [2, 1, 128]), value("sr", [], INT64)],
        [value("stateN", None), value("rate", None, INT64)],
        [constant("zero", [0]), weight("w", 1, 512, 64), weight("r", 1, 512, 128)],
    )
    feeds, (state, rate) = run(read(proto, tmp_path))
    assert feeds["sr"].shape == ()
    assert rate == 16000
    assert state.shape == (2, 1, 128)
    assert np.isfinite(state).all()
    assert state.std() > 0


@pytest.mark.live
def test_optional_and_sequence_inputs_have_the_shape_of_their_tensors(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ["N", 2])
    proto = model(
        [node("SequenceAt", ["s", "i"], ["y"])],
        [sequence, value("i", [], INT32)],
        [value("y", None)],
    )
    feeds, (output,) = run(read(proto, tmp_path), batch=3)
    assert [array.shape for array in feeds["s"]] == [(3, 2), (3, 2)]
    assert feeds["i"] == 0
    assert output.shape == (3, 2)
