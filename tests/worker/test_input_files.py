"""Real inputs of a model, fed to a variant that declares another float type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import InputSpec, SymbolSize
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint, Variant
from pytest_ortbench.launch.reference import reference_case, reference_key
from pytest_ortbench.worker.input_files import size_options
from pytest_ortbench.worker.inputs import make_feeds, varies
from tests.damaged_archives import DAMAGES, damaged
from tests.results_factory import make_case
from tests.worker.graphs import serialised, value
from tests.worker.sessions import cpu_session

SPEC = InputSpec(name="x", type="tensor(float)", shape=(3,), hint=ValueHint(kind="normal"))
HALF = "tensor(float16)"


def stored(folder: Path, values: Any) -> InputSpec:
    np.savez(folder / "photos.npz", x=values)
    return replace(SPEC, path=str(folder / "photos.npz"), member="x")


@pytest.mark.live
def test_a_half_precision_session_gets_the_values_rounded(tmp_path: Path) -> None:
    """Else real inputs can't be used for any variant with half-precision inputs."""
    spec = stored(tmp_path, np.array([0.1, 1.0, 1000.3], np.float32)).typed(HALF)
    feeds = make_feeds([spec], seed=0)
    content = serialised(
        [helper.make_node("Identity", ["x"], ["y"])],
        [value("x", TensorProto.FLOAT16, ["N"])],
        [value("y", TensorProto.FLOAT16, ["N"])],
    )
    (found,) = cpu_session(content).run(None, feeds)
    assert found.dtype == np.float16
    assert found.tolist() == [np.float16(0.1), 1.0, np.float16(1000.3)]


def test_a_float_variant_of_a_half_precision_model_gets_them_widened(tmp_path: Path) -> None:
    half = replace(stored(tmp_path, np.array([0.1, 1, 2], np.float16)), type=HALF)
    feeds = make_feeds([half.typed("tensor(float)")], seed=0)
    assert feeds["x"].dtype == np.float32  # type: ignore[attr-defined]  # an array
    assert feeds["x"].tolist() == [np.float32(np.float16(0.1)), 1, 2]  # type: ignore[attr-defined]  # an array


def test_values_beyond_the_range_are_refused_and_not_fed_as_infinity(tmp_path: Path) -> None:
    spec = stored(tmp_path, np.array([-1e6, 0, np.inf], np.float32)).typed(HALF)
    with pytest.raises(WorkerError) as caught:
        make_feeds([spec], seed=0)
    message = caught.value.failure.message
    assert message.startswith("input 'x' ")
    for part in ("tensor(float16)", f"{spec.path}:x ", "1e+06", "(65504)"):
        assert part in message


def test_an_infinity_of_the_file_stays_one(tmp_path: Path) -> None:
    spec = stored(tmp_path, np.array([np.inf, -np.inf, np.nan], np.float32)).typed(HALF)
    assert str(make_feeds([spec], seed=0)["x"].tolist()) == "[inf, -inf, nan]"  # type: ignore[attr-defined]  # an array


def test_a_file_of_another_type_than_the_model_s_is_never_cast(tmp_path: Path) -> None:
    spec = stored(tmp_path, np.zeros(3, np.float64)).typed(HALF)
    with pytest.raises(WorkerError, match=r"tensor\(float16\).* float64"):
        make_feeds([spec], seed=0)


def test_all_variants_of_a_model_have_the_reference_in_common(tmp_path: Path) -> None:
    spec = stored(tmp_path, np.zeros(3, np.float32))
    info = TensorInfo(name="x", type="tensor(float)", shape=("N",))
    model = Model(name="m", path="m.onnx", source="file", digest="d", size_bytes=1, inputs=(info,))
    half = Variant(precision="fp16", path="h.onnx", digest="h", size_bytes=1)
    case = replace(make_case(model=model), inputs=(spec,))
    converted = replace(case, variant=half, inputs=(spec.typed(HALF),))
    assert reference_case(converted).inputs == (spec,)
    assert reference_key(reference_case(converted)) == reference_key(reference_case(case))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_archive_is_one_message_that_names_it(tmp_path: Path, damage: str) -> None:
    path = damaged(tmp_path / "photos.npz", damage, x=np.zeros(3, np.float32))
    with pytest.raises(WorkerError) as caught:
        make_feeds([replace(SPEC, path=str(path), member="x")], seed=0)
    message, hint = caught.value.failure.message, caught.value.failure.hint
    assert (f" {path} " in message, "numpy.save" in hint) == (True, True)
    assert DAMAGES[damage] in message


def test_a_file_that_is_cut_off_is_copied_again_and_one_of_objects_is_written_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.npy"
    spec = replace(SPEC, path=str(path), member="")
    np.save(path, np.zeros(3, np.float32))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(WorkerError) as cut:
        make_feeds([spec], seed=0)
    np.save(path, np.array([{}, 1, None], object), allow_pickle=True)
    with pytest.raises(WorkerError) as objects:
        make_feeds([spec], seed=0)
    hints = [caught.value.failure.hint for caught in (cut, objects)]
    assert ["copied" in hint for hint in hints] == [True, False]
    assert ["dtype" in hint for hint in hints] == [False, True]


def test_an_optional_input_takes_an_array_of_any_shape(tmp_path: Path) -> None:
    """No plan knows the sizes behind an optional type."""
    path = tmp_path / "input_0.pb"
    path.write_bytes(numpy_helper.from_array(np.float32([[1, 2, 3]])).SerializeToString())
    spec = replace(SPEC, type="optional(tensor(float))", shape=(), path=str(path))
    fed = make_feeds([spec], seed=0)["x"]
    assert np.asarray(fed).tolist() == [[1, 2, 3]]


def test_a_tensor_is_no_sequence_of_tensors(tmp_path: Path) -> None:
    """Read as a sequence it would be an empty one."""
    path = tmp_path / "input_0.pb"
    spec = replace(SPEC, type="seq(tensor(float))", shape=(), path=str(path))
    one = np.float32([1, 2])
    path.write_bytes(numpy_helper.from_list([one, one]).SerializeToString())
    assert [array.tolist() for array in make_feeds([spec], seed=0)["x"]] == [[1, 2], [1, 2]]  # type: ignore[attr-defined]  # a list
    for array in (one, np.float32(3)):
        path.write_bytes(numpy_helper.from_array(array).SerializeToString())
        with pytest.raises(WorkerError) as caught:
            make_feeds([spec], seed=0)
        assert str(path) in caught.value.failure.message


def test_further_sets_of_a_file_are_fed_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "photos.npz"
    arrays = {"x": np.float32([1]), "set:1:x": np.float32([2]), "set:2:x": np.float32([3])}
    with path.open("wb") as stream:
        np.savez(stream, **arrays)
    spec = InputSpec(
        name="x",
        type="tensor(float)",
        shape=(1,),
        hint=ValueHint(kind="normal"),
        path=str(path),
        member="x",
        sets=3,
    )
    assert varies((spec,))
    fed = [make_feeds((spec,), seed=0, sample=number)["x"] for number in range(4)]
    assert [np.asarray(value).tolist() for value in fed] == [[1.0], [2.0], [3.0], [1.0]]


@pytest.mark.parametrize(
    ("held", "options"),
    [
        ((8, 3, 64, 64), "--ort-batch-sizes=8 --ort-dims=height:64 --ort-dims=width:64"),
        ((2, 3, 32, 32), "--ort-batch-sizes=2"),
        ((1, 3, 32, 32), ""),
        ((1, 3, 64, 32), ""),
        ((1, 3, 0, 0), ""),
        ((1, 4, 32, 32), ""),
        ((1, 3, 32), ""),
    ],
)
def test_options_set_the_sizes_that_differ(held: tuple[int, ...], options: str) -> None:
    names = {"N": (1, "batch"), "height": (32, "dims"), "width": (32, "default")}
    sizes = tuple(
        SymbolSize(symbol=name, size=size, origin=origin, how=origin)
        for name, (size, origin) in names.items()
    )
    spec = replace(SPEC, shape=(1, 3, 32, 32), resolved=sizes)
    assert size_options(spec, spec.shape, held) == options
