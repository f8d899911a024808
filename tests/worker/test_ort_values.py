"""Tensors of types that numpy lacks, in real sessions: fed, timed, read, compared, stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import InputSpec, Provider, SessionConfig
from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.binding import bind, has_numeric_outputs
from pytest_ortbench.worker.input_files import read_input
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.ort_values import is_bound, plain_call
from pytest_ortbench.worker.session import create, session_options
from tests.models.graphs import FLOAT, constant, model, node, value, weight

pytestmark = pytest.mark.live

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
BFLOAT16, INT4 = TensorProto.BFLOAT16, TensorProto.INT4
EIGHT_BITS = [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ]
ELEMENTS = [BFLOAT16, *EIGHT_BITS, INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2]


def casting(source: int, target: int) -> onnx.ModelProto:
    return model(
        [node("Cast", ["x"], ["y"], to=target)],
        [value("x", [2, 3], source)],
        [value("y", [2, 3], target)],
        opsets={"": 25},
        ir_version=11,
    )


def session_of(proto: onnx.ModelProto) -> Any:
    made, _ = create(proto.SerializeToString(), CPU, session_options(SessionConfig(), threads=1))
    return made


def spec(element: int, **further: Any) -> InputSpec:
    kind = ValueHint(kind="integers", low=-2, high=1)
    if "float" in ELEMENT_NAMES[element]:
        kind = ValueHint(kind="normal")
    return InputSpec(
        name="x", type=f"tensor({ELEMENT_NAMES[element]})", shape=(2, 3), hint=kind, **further
    )


@pytest.mark.parametrize("element", ELEMENTS)
def test_what_is_fed_is_what_the_session_reads(element: int) -> None:
    feeds = make_feeds([spec(element)], seed=0)
    (read,) = session_of(casting(element, FLOAT)).run(None, feeds)
    assert np.array_equal(read, np.asarray(feeds["x"]).astype(np.float32))


@pytest.mark.parametrize("element", ELEMENTS)
def test_what_the_session_gives_is_what_is_read(element: int) -> None:
    numbers = np.array([[0, 1, 1], [1, 0, 1]], np.float32)
    session = session_of(casting(FLOAT, element))
    (found,) = session.run(None, {"x": numbers})
    assert np.array_equal(found, numbers)
    assert found.dtype in (np.float32, np.int8, np.uint8)


def test_a_plain_session_is_left_alone() -> None:
    session = session_of(casting(FLOAT, TensorProto.DOUBLE))
    assert "run" not in vars(session)
    feeds = {"x": np.zeros((2, 3), np.float32)}
    assert plain_call(session, feeds) == (session.run, feeds)


def test_what_is_timed_converts_nothing() -> None:
    """A bfloat16 that comes in goes through run; one that comes out needs a bound run."""
    feeds = {"x": np.ones((2, 3), np.float32)}
    incoming = session_of(casting(BFLOAT16, FLOAT))
    given: Any
    run: Any
    run, given = plain_call(incoming, feeds)
    assert given["x"].data_type() == "tensor(bfloat16)"
    assert run(None, given)[0].tolist() == feeds["x"].tolist()
    assert not is_bound(incoming)
    outgoing = session_of(casting(FLOAT, BFLOAT16))
    run, given = plain_call(outgoing, feeds)
    assert run(None, given) == ()
    assert is_bound(outgoing)


def test_plain_outputs_stand_beside_those_of_other_types() -> None:
    proto = model(
        [node("Cast", ["x"], ["y"], to=BFLOAT16), node("SequenceConstruct", ["x", "x"], ["s"])],
        [value("x", [2])],
        [
            value("y", [2], BFLOAT16),
            value("x", [2]),
            helper.make_value_info(
                "s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
            ),
        ],
    )
    session = session_of(proto)
    x = np.array([1.0, 2.0], np.float32)
    rounded, same, sequence = session.run(None, {"x": x})
    assert (rounded.tolist(), same.tolist()) == ([1, 2], [1, 2])
    assert [part.tolist() for part in sequence] == [[1, 2], [1, 2]]
    assert session.run(["x"], {"x": x})[0].tolist() == [1, 2]


def test_bfloat16_is_bound_once() -> None:
    session = session_of(casting(BFLOAT16, BFLOAT16))
    binding = bind(session, {"x": np.ones((2, 3), np.float32)}, CPU)
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].data_type() == "tensor(bfloat16)"
    assert not has_numeric_outputs(session)


def test_a_sequence_beside_such_an_output_is_refused_with_the_reason() -> None:
    tensors = helper.make_tensor_type_proto(FLOAT, None)
    proto = model(
        [node("SequenceAt", ["x", "first"], ["e"]), node("Cast", ["e"], ["y"], to=BFLOAT16)],
        [helper.make_value_info("x", helper.make_sequence_type_proto(tensors))],
        [value("y", None, BFLOAT16)],
        [constant("first", 0)],
    )
    with pytest.raises(WorkerError) as caught:
        session_of(proto).run(None, {"x": [np.ones(2, np.float32)]})
    assert caught.value.failure.kind == "unsupported"


def test_asynchronous_calls_are_refused_with_the_reason() -> None:
    session = session_of(casting(BFLOAT16, FLOAT))
    with pytest.raises(WorkerError) as caught:
        session.run_async(None, {}, lambda *_: None, None)
    assert caught.value.failure.kind == "unsupported"


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "oracle"), [(BFLOAT16, ml_dtypes.bfloat16), (INT4, ml_dtypes.int4)]
)
@pytest.mark.parametrize("suffix", [".npy", ".pb"])
def test_files_of_such_types_are_read(
    element: int, oracle: Any, suffix: str, tmp_path: Path
) -> None:
    numbers = np.array([[0, 1, -2], [3, -4, 5]]).astype(oracle)
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, numbers)
    else:
        path.write_bytes(numpy_helper.from_array(numbers, "x").SerializeToString())
    found = read_input(spec(element, path=str(path)))
    assert np.array_equal(np.asarray(found), numbers.astype(np.float32))


@pytest.mark.parametrize("element", [BFLOAT16, INT4])
def test_integers_in_place_of_raw_bytes_are_read(element: int, tmp_path: Path) -> None:
    path = tmp_path / "x.pb"
    numbers = [0, 1, -2, 3, -4, 5]
    path.write_bytes(helper.make_tensor("x", element, [2, 3], numbers).SerializeToString())
    assert np.asarray(read_input(spec(element, path=str(path)))).reshape(-1).tolist() == numbers


def test_a_file_may_hold_the_numbers_in_float32(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 3), 1.5, np.float32))
    found = read_input(spec(BFLOAT16, path=str(tmp_path / "x.npy")))
    assert np.asarray(found).tolist() == [[1.5] * 3] * 2


def test_numbers_that_the_type_lacks_are_not_rounded_silently(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 3), 0.1, np.float32))
    with pytest.raises(WorkerError) as caught:
        read_input(spec(BFLOAT16, path=str(tmp_path / "x.npy")))
    assert caught.value.failure.kind == "error"


@pytest.mark.parametrize(
    ("shape", "advised"),
    [
        ((32, 3), "--ort-batch-sizes=32"),
        ((32, 3), "array[:2]"),
        ((1, 3), "store 2 examples"),
        ((2, 4), "[2, 3]"),
    ],
)
def test_an_array_of_other_sizes_is_told_how_it_fits(
    shape: tuple[int, ...], advised: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    with pytest.raises(WorkerError) as caught:
        read_input(spec(FLOAT, path=str(tmp_path / "x.npy")))
    assert advised in caught.value.failure.hint


def test_an_older_runtime_says_what_it_can_not_make() -> None:
    class Old:
        __version__ = "1.15.0"

        class OrtValue:
            @staticmethod
            def ortvalue_from_shape_and_type(shape: object, element: object) -> None:
                raise TypeError(f"{shape} {element}")

    from pytest_ortbench.worker.ort_values import value_of

    with pytest.raises(WorkerError) as caught:
        value_of(Old, np.ones(2, np.float32), "bfloat16", name="x")  # type: ignore[arg-type]
    assert caught.value.failure.kind == "unsupported"
    assert "1.15.0" in caught.value.failure.message


def test_products_of_stand_ins_are_those_of_their_type(tmp_path: Path) -> None:
    """The first layer of a network that takes bfloat16."""
    proto = model(
        [node("Cast", ["x"], ["c"], to=FLOAT), node("MatMul", ["c", "w"], ["y"])],
        [value("x", [2, 3], BFLOAT16)],
        [value("y", None)],
        [weight("w", 3, 4)],
    )
    del tmp_path
    feeds = make_feeds([replace(spec(BFLOAT16))], seed=1)
    (found,) = session_of(proto).run(None, feeds)
    right = np.asarray(feeds["x"]) @ numpy_helper.to_array(proto.graph.initializer[0])
    assert np.allclose(found, right, rtol=1e-5)
