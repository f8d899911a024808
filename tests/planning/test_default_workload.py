"""What is fed where nobody says it: what counts as items, which sizes are independent, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.planning.default_sizes import Place, default_size
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes
from tests.models.graphs import INT64, constant, model, node, read, run, value, weight

CURRENT = Target(runtime=Runtime(), providers=(Provider(alias="cpu", name="CPUExecutionProvider"),))

pytestmark = pytest.mark.live  # shapes are inferred in a process


def _case(proto: ModelProto, folder: Path, **axes: Any) -> Case:
    found = read(proto, folder)
    (planned,) = build_plan(PlanRequest(models=(), **axes), [found], [CURRENT]).entries
    assert planned.refusal is None, planned.refusal.message
    return planned.case


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {spec.name: spec.shape for spec in case.inputs}


def _origins(case: Case) -> dict[str, str]:
    return {size.symbol: size.origin for spec in case.inputs for size in spec.resolved}


def _graph_network(nodes: str, edges: str) -> ModelProto:
    """Messages of neighbours are added up: the rows of ``x`` belong together."""
    return model(
        [
            node("Gather", ["edge_index", "i0"], ["s"], axis=0),
            node("Gather", ["edge_index", "i1"], ["t"], axis=0),
            node("Gather", ["x", "s"], ["m"]),
            node("MatMul", ["m", "w"], ["mw"]),
            node("Unsqueeze", ["t", "last"], ["tu"]),
            node("Shape", ["mw"], ["ms"]),
            node("Expand", ["tu", "ms"], ["te"]),
            node("MatMul", ["x", "w"], ["xw"]),
            node("ScatterElements", ["xw", "te", "mw"], ["y"], axis=0, reduction="add"),
        ],
        [value("x", [nodes, 16]), value("edge_index", [2, edges], INT64)],
        [value("y", [nodes, 16])],
        [
            *(weight("w", 16, 16), constant("i0", 0), constant("i1", 1)),
            constant("last", [-1]),
        ],
        opsets={"": 18},
    )


@pytest.mark.parametrize(
    ("names", "rows"), [(("num_nodes", "num_edges"), 1024), (("N", "E"), 128), (("n", "m"), 128)]
)
def test_nodes_of_a_graph_are_no_batch(names: tuple[str, str], rows: int, tmp_path: Path) -> None:
    case = _case(_graph_network(*names), tmp_path)
    assert (case.batch, _shapes(case)["x"]) == (1, (rows, 16))
    assert _shapes(case)["edge_index"][1] > 100
    assert names[0] in case.no_batch
    assert _origins(case) == dict.fromkeys(names, "default")


def test_who_asks_for_a_batch_that_is_none_is_told_the_option(tmp_path: Path) -> None:
    found = read(_graph_network("num_nodes", "num_edges"), tmp_path)
    request = PlanRequest(models=(), batch_sizes=(8,))
    (planned,) = build_plan(request, [found], [CURRENT]).entries
    assert planned.refusal is not None
    assert planned.refusal.kind == "unsupported"
    assert "--ort-dims=num_nodes:8" in planned.refusal.hint
    assert (
        _case(_graph_network("V", "E"), tmp_path, dims={"V": (8,)}).case_id == "m/native/cpu/b1/V:8"
    )


def _with_memory(memory: str) -> ModelProto:
    return model(
        [
            node("Conv", ["image", "w"], ["f"], pads=[1, 1, 1, 1]),
            node("ReduceMean", ["memory"], ["mean"], axes=[0, 2, 3], keepdims=1),
            node("Add", ["f", "mean"], ["y"]),
        ],
        [value("image", ["batch_size", 3, "height", "width"]), value("memory", [memory, 16, 8, 8])],
        [value("y", [None] * 4)],
        [weight("w", 16, 3, 3, 3)],
    )


@pytest.mark.parametrize(("memory", "size"), [("num_mem", 8), ("T", 128), ("mystery", 16)])
def test_slots_of_a_memory_are_neither_a_batch_nor_an_image(
    memory: str, size: int, tmp_path: Path
) -> None:
    case = _case(_with_memory(memory), tmp_path, batch_sizes=(4,))
    assert _shapes(case) == {"image": (4, 3, 224, 224), "memory": (size, 16, 8, 8)}
    assert (case.batch, case.no_batch) == (4, "")


@pytest.mark.parametrize(
    ("symbol", "shape", "size"),
    [
        ("num_voxels", [32, 4], 4096),
        ("num_points", [3], 1024),
        ("num_patches", [96], 256),
        ("num_boxes", [4], 100),
    ],
)
def test_counts_are_no_batch_even_if_each_is_treated_by_itself(
    symbol: str, shape: list[int], size: int, tmp_path: Path
) -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [symbol, *shape])], [value("y", None)])
    case = _case(proto, tmp_path)
    assert (case.batch, _shapes(case)["x"][0]) == (1, size)
    assert case.no_batch


def test_rows_of_a_table_are_a_batch_whatever_they_are_called(tmp_path: Path) -> None:
    for symbol in ("num_samples", "rows", "N", "unk__7", "mystery"):
        proto = model(
            [node("Gemm", ["x", "w"], ["y"])],
            [value("x", [symbol, 4])],
            [value("y", None)],
            [weight("w", 4, 2)],
        )
        assert ModelAxes(read(proto, tmp_path)).batch_axis.symbols == (symbol,)
        case = _case(proto, tmp_path)
        assert (case.batch, _shapes(case)["x"]) == (1, (1, 4))


def _two_towers(first: str, second: str) -> ModelProto:
    """Texts and images, each against each."""
    return model(
        [
            node("MatMul", ["image", "wi"], ["i"]),
            node("MatMul", ["text", "wt"], ["t"]),
            node("Transpose", ["t"], ["tt"]),
            node("MatMul", ["i", "tt"], ["per_image"]),
            node("Identity", ["t"], ["of_texts"]),
            node("Identity", ["i"], ["of_images"]),
        ],
        [value("image", [first, 8]), value("text", [second, 6])],
        [value(name, None) for name in ("per_image", "of_texts", "of_images")],
        [weight("wi", 8, 4), weight("wt", 6, 4)],
    )


def test_symbols_that_differ_are_independent(tmp_path: Path) -> None:
    case = _case(_two_towers("image_batch", "text_batch"), tmp_path, dims={"text_batch": (7,)})
    assert _shapes(case) == {"image": (1, 8), "text": (7, 6)}
    assert case.batch == 1


def test_symbols_that_the_graph_adds_have_one_size(tmp_path: Path) -> None:
    proto = model(
        [node("Add", ["a", "b"], ["s"]), node("Softmax", ["s"], ["y"], axis=1)],
        [value("a", ["batch", "seq", 4]), value("b", ["batch", "other", 4])],
        [value("y", None)],
    )
    case = _case(proto, tmp_path, dims={"other": (9,)})
    assert _shapes(case) == {"a": (1, 9, 4), "b": (1, 9, 4)}
    assert _origins(case)["seq"] == "graph"


def test_a_batch_that_is_summed_up_makes_no_items(tmp_path: Path) -> None:
    proto = model(
        [node("ReduceMax", ["x"], ["top"], keepdims=0), node("Sub", ["x", "top"], ["y"])],
        [value("x", ["batch_size", 8])],
        [value("y", None)],
    )
    case = _case(proto, tmp_path)
    assert (case.batch, _shapes(case)["x"]) == (1, (1, 8))
    assert "batch_size is not a batch axis (ReduceMax 'top' mixes along it)" in case.no_batch


def test_sounds_and_texts_have_a_length_that_operators_take(tmp_path: Path) -> None:
    sound = model(
        [node("STFT", ["x", "hop", "", "frame"], ["y"], onesided=1)],
        [value("x", ["B", "L"])],
        [value("y", None)],
        [constant("hop", 160), constant("frame", 400)],
    )
    assert _shapes(_case(sound, tmp_path))["x"] == (1, 16_000)
    text = model(
        [
            node("Gather", ["words", "ids"], ["e"]),
            node("Shape", ["ids"], ["s"]),
            node("Gather", ["s", "i"], ["n"], axis=0),
            node("Slice", ["table", "zero", "n", "zero"], ["p"]),
            node("Add", ["e", "p"], ["y"]),
        ],
        [value("ids", ["batch", "seq"], TensorProto.INT64)],
        [value("y", None)],
        [
            *(constant("i", [1]), constant("zero", [0])),
            *(weight("table", 77, 4), weight("words", 100, 4)),
        ],
    )
    case = _case(text, tmp_path)
    assert _shapes(case)["ids"] == (1, 77)
    (size,) = [size for size in case.inputs[0].resolved if size.symbol == "seq"]
    assert "Slice 'p'" in size.how


def _stored(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "in.npz", **arrays)  # type: ignore[arg-type]  # arrays by name
    return folder / "in.npz"


def test_one_symbol_may_have_several_sizes_in_real_inputs(tmp_path: Path) -> None:
    """ONNX Runtime takes them, so they are measured, and it is said."""
    proto = model(
        [node("Shape", ["a"], ["s"]), node("Expand", ["b", "s"], ["y"])],
        [value("a", ["N", "H", "W"]), value("b", ["N", "H", "W"])],
        [value("y", None)],
    )
    inputs = _stored(tmp_path, a=np.ones((1, 6, 5), np.float32), b=np.ones((1, 1, 1), np.float32))
    case = _case(proto, tmp_path, inputs=inputs)
    assert _shapes(case) == {"a": (1, 6, 5), "b": (1, 1, 1)}
    assert {size.origin for size in case.inputs[1].resolved} == {"batch", "file"}
    assert "several sizes" in case.inputs[1].sizes_text
    feeds, (output,) = run(read(proto, tmp_path), inputs_path=inputs)
    assert (feeds["b"].shape, output.shape) == ((1, 1, 1), (1, 6, 5))


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
def test_arrays_for_a_scalar_are_fed_as_they_are(shape: tuple[int, ...], tmp_path: Path) -> None:
    proto = model(
        [node("Add", ["x", "s"], ["y"])],
        [value("x", [3]), value("s", [])],
        [value("y", None)],
    )
    inputs = _stored(tmp_path, x=np.ones(3, np.float32), s=np.ones(shape, np.float32))
    feeds, _ = run(read(proto, tmp_path), inputs_path=inputs)
    assert feeds["s"].shape == shape


def test_no_batch_is_claimed_of_inputs_without_rank(tmp_path: Path) -> None:
    proto = model(
        [node("Gemm", ["x", "w"], ["y"])],
        [value("x", None), value("w", [4, 4])],
        [value("y", None)],
    )
    inputs = _stored(tmp_path, x=np.ones((2, 4), np.float32), w=np.ones((4, 4), np.float32))
    case = _case(proto, tmp_path, inputs=inputs)
    assert (case.batch, _shapes(case)["x"]) == (1, (2, 4))
    assert "how many axes x has" in case.no_batch
    request = PlanRequest(models=(), batch_sizes=(2,), inputs=inputs)
    (planned,) = build_plan(request, [read(proto, tmp_path)], [CURRENT]).entries
    assert planned.refusal is not None
    assert "how many axes" in planned.refusal.message
    assert "fixed" not in planned.refusal.message


@pytest.mark.parametrize(
    ("name", "shape", "size"),
    [
        ("wav", ("N", "T"), 16_000),
        ("speech", ("N", 1, "T"), 16_000),
        ("input_audio", ("T",), 16_000),
        ("audio_signal", ("N", 80, "T"), 128),
        ("speech", ("N", "T", 400), 128),
        ("tokens", ("N", "T"), 128),
    ],
)
def test_a_sound_by_its_name_is_a_second_long(
    name: str, shape: tuple[int | str, ...], size: int
) -> None:
    info = TensorInfo(name=name, type="tensor(float)", shape=shape)
    place = Place(info=info, shape=shape, axis=shape.index("T"))
    assert default_size("T", [place])[0] == size
