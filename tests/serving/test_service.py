"""A service in this process, with real sessions: what it answers, refuses and bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.serving.protocol import (
    DeclaredTensor,
    InferResponse,
    decode_response,
)
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.serving.service import RequestRefused, Service
from pytest_ortbench.serving.tensor_values import HEADER_LENGTH
from tests.models import graphs
from tests.serving.served import (
    arrays,
    asked,
    during,
    looked_up,
    lookup,
    model_of,
    parts,
    service_of,
)

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    """Serves :func:`looked_up`, whose requests may be joined."""
    return model_of(looked_up(), tmp_path_factory.mktemp("model"), joins=True)


def refusal_of(service: Service, what: Awaitable[InferResponse]) -> RequestRefused:
    async def fails() -> RequestRefused:
        with pytest.raises(RequestRefused) as refused:
            await what
        assert refused.value.hint  # a next step for whoever sent it
        return refused.value

    return during(service, fails)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


async def never() -> AsyncIterator[bytes]:
    """A body of which nothing comes."""
    await asyncio.Event().wait()
    yield b""


# -- the model -------------------------------------------------------------------------------------


def test_the_interface_is_told_in_the_words_of_the_protocol(model: ServedModel) -> None:
    assert model.metadata.inputs == (
        DeclaredTensor(name="ids", datatype="INT64", shape=(-1,)),
        DeclaredTensor(name="x", datatype="FP32", shape=(-1, 3)),
    )
    assert [tensor.name for tensor in model.metadata.outputs] == ["sum", "log"]


def test_a_batch_is_joined_and_taken_apart_along_its_own_axes(tmp_path: Path) -> None:
    """The batch is axis 1 of the input, and axis 0 of the output."""
    proto = graphs.model(
        [
            graphs.node("Relu", ["x"], ["r"]),
            graphs.node("Transpose", ["r"], ["y"], perm=[1, 0, 2]),
        ],
        [graphs.value("x", ["seq", "batch", 4])],
        [graphs.value("y", ["batch", "seq", 4])],
    )
    made = model_of(proto, tmp_path, joins=True)
    assert made.axes is not None
    assert (made.axes.inputs, made.axes.outputs) == ({"x": 1}, (0,))


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(
            [
                graphs.node("ReduceMean", ["x"], ["mean"], axes=[0]),
                graphs.node("Add", ["x", "mean"], ["y"]),
            ],
            id="rows are mixed",
        ),
        pytest.param([graphs.node("ReduceMean", ["x"], ["y"], axes=[0])], id="rows are lost"),
    ],
)
def test_requests_are_not_joined_where_their_answers_would_change(
    nodes: list[onnx.NodeProto], tmp_path: Path
) -> None:
    proto = graphs.model(nodes, [graphs.value("x", ["batch", 4])], [graphs.value("y", None)])
    made = model_of(proto, tmp_path, joins=True)
    assert made.axes is None
    assert made.unjoined


def test_nothing_speaks_against_joining_where_nobody_asked(tmp_path: Path) -> None:
    made = model_of(looked_up(), tmp_path)
    assert (made.axes, made.unjoined) == (None, "")


def test_an_output_that_the_protocol_lacks_is_left_out(tmp_path: Path) -> None:
    classes = [
        graphs.node("Relu", ["x"], ["y"]),
        onnx.helper.make_node(
            "ZipMap", ["y"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3, 4]
        ),
    ]
    maps = onnx.helper.make_sequence_type_proto(
        onnx.helper.make_map_type_proto(
            onnx.TensorProto.INT64, onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
        )
    )
    outputs = [graphs.value("y", ["batch", 4]), onnx.helper.make_value_info("z", maps)]
    opsets = {"": 17, "ai.onnx.ml": 3}
    made = model_of(
        graphs.model(classes, [graphs.value("x", ["batch", 4])], outputs, opsets=opsets), tmp_path
    )
    assert made.left_out == ("z",)
    assert [tensor.name for tensor in made.metadata.outputs] == ["y"]
    alone = graphs.model(classes, [graphs.value("x", ["batch", 4])], outputs[1:], opsets=opsets)
    with pytest.raises(UsageError) as refused:
        model_of(alone, tmp_path)
    assert refused.value.place == "MODEL"


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True])
def test_a_request_is_answered_as_the_session_does(model: ServedModel, binary: bool) -> None:
    service = service_of(model)
    body = lookup([3, 9], id="seven", parameters={"binary_data_output": binary})
    response = during(service, lambda: asked(service, body))
    feeds = {"ids": np.array([3, 9]), "x": np.ones((2, 3), dtype=np.float32)}
    expected = dict(zip(("sum", "log"), model.run(feeds), strict=True))
    assert (response.model_name, response.model_version) == ("m", "1")
    assert response.request_id == "seven"
    assert arrays(response).keys() == expected.keys()
    for name, array in arrays(response).items():
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.parametrize("names", [["log"], ["log", "sum"]])
def test_only_outputs_that_are_asked_for_come_in_the_order_of_the_request(
    model: ServedModel, names: list[str]
) -> None:
    service = service_of(model)
    body = lookup([1], outputs=[{"name": name} for name in names])
    assert list(arrays(during(service, lambda: asked(service, body)))) == names


def test_joined_requests_get_the_rows_that_are_theirs(model: ServedModel) -> None:
    service = service_of(model, most_rows=8, wait_s=60.0, waiting=8)
    batches = [[1], [2, 3], [4, 5, 6], [7, 8]]

    async def together() -> list[tuple[InferResponse, str]]:
        async def one(ids: list[int]) -> tuple[InferResponse, str]:
            message, headers = await service.infer("m", "", None, parts(lookup(ids)))
            return decode_response(message.body), headers["Server-Timing"]

        return await asyncio.gather(*map(one, batches))

    answers = during(service, together)
    for ids, (response, timing) in zip(batches, answers, strict=True):
        alone = model.run({"ids": np.array(ids), "x": np.ones((len(ids), 3), dtype=np.float32)})
        np.testing.assert_allclose(arrays(response)["sum"], alone[0], rtol=1e-6)
        assert timing.endswith("batch;desc=8")


def test_a_request_that_spoils_a_batch_spoils_no_other(model: ServedModel) -> None:
    service = service_of(model, most_rows=3, wait_s=60.0)

    async def together() -> list[InferResponse | BaseException]:
        bodies = [lookup([1]), lookup([10]), lookup([2])]
        asking = [asked(service, body) for body in bodies]
        return await asyncio.gather(*asking, return_exceptions=True)

    first, spoilt, last = during(service, together)
    assert isinstance(spoilt, RequestRefused)
    assert (spoilt.status, spoilt.place) == (422, "inputs")
    assert spoilt.hint
    for ids, response in ((1, first), (2, last)):
        assert isinstance(response, InferResponse)
        alone = model.run({"ids": np.array([ids]), "x": np.ones((1, 3), dtype=np.float32)})
        np.testing.assert_array_equal(arrays(response)["sum"], alone[0])


# -- refusals --------------------------------------------------------------------------------------

_X = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 1, 1]}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"inputs": [_X]}, "inputs"),
        ({"inputs": [{**_X, "name": "y"}]}, "inputs[0].name"),
        ({"inputs": [{**_X, "datatype": "FP64"}]}, "inputs[0].datatype"),
        ({"inputs": [{**_X, "shape": [3]}]}, "inputs[0].shape"),
        ({"inputs": [{**_X, "shape": [3, 1]}]}, "inputs[0].shape[1]"),
        ({"outputs": [{"name": "nope"}]}, "outputs[0].name"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_at_its_place(
    model: ServedModel, fields: dict[str, object], place: str
) -> None:
    service = service_of(model)
    error = refusal_of(service, asked(service, lookup([1], **fields)))
    assert (error.status, error.place) == (400, place)


@pytest.mark.parametrize(
    ("name", "version", "status"), [("n", "", 404), ("m", "2", 404), ("../m", "", 404)]
)
def test_another_model_is_not_found(
    model: ServedModel, name: str, version: str, status: int
) -> None:
    service = service_of(model)

    async def ask() -> InferResponse:
        await service.infer(name, version, None, parts(lookup([1])))
        raise AssertionError

    assert refusal_of(service, ask()).status == status


@pytest.mark.parametrize("header", ["", "x", "-1", "1e3", "9" * 30, "٣"])
def test_a_length_that_is_no_number_is_refused(model: ServedModel, header: str) -> None:
    service = service_of(model)
    error = refusal_of(service, asked(service, lookup([1]), header))
    assert (error.status, error.place) == (400, HEADER_LENGTH)


@pytest.mark.parametrize(
    ("body", "place", "told"),
    [
        (rb'{"id": "so \ud83d", "inputs": []}', "inputs", ""),
        (rb'{"inputs": [{"name": "x\ud83d"}]}', "inputs[0].name", "'\\ud83d'"),
        (b'{"id": "\xdcbung"}', "body", "byte 8 (0xdc)"),
        (b'{"inputs": [NaN]}', "body", "NaN"),
    ],
)
def test_text_that_is_no_unicode_is_told_as_such(
    model: ServedModel, body: bytes, place: str, told: str
) -> None:
    service = service_of(model)
    error = refusal_of(service, asked(service, body))
    assert (error.status, error.place) == (400, place)
    assert told in str(error)


def test_values_that_json_lacks_are_refused_with_the_way_out(model: ServedModel) -> None:
    service = service_of(model)
    error = refusal_of(service, asked(service, lookup([1], x=-1.0)))
    assert (error.status, error.place) == (406, "outputs[1].data")
    service = service_of(model)
    body = lookup([1], x=-1.0, parameters={"binary_data_output": True})
    assert np.isnan(arrays(during(service, lambda: asked(service, body)))["log"]).all()


def test_a_body_is_bounded_without_being_announced(model: ServedModel) -> None:
    service = service_of(model, body_bytes=100)

    async def ask() -> InferResponse:
        await service.infer("m", "", None, parts(*[b" " * 60] * 2))
        raise AssertionError

    error = refusal_of(service, ask())
    assert (error.status, error.place) == (413, "body")


def test_a_body_that_does_not_come_is_given_up(model: ServedModel) -> None:
    service = service_of(model, timeout_s=0.05)

    async def ask() -> InferResponse:
        await service.infer("m", "", None, never())
        raise AssertionError

    error = refusal_of(service, ask())
    assert (error.status, error.place) == (408, "body")


def test_one_request_more_than_may_wait_is_turned_away(model: ServedModel) -> None:
    """Nothing runs yet, so that what waits stays; it is answered once something does."""
    service = service_of(model, waiting=2)

    async def all_of_it() -> list[object]:
        waiting = [asyncio.create_task(asked(service, lookup([1]))) for _ in range(2)]
        await until(lambda: service.waiting == 2)
        with pytest.raises(RequestRefused) as refused:
            await asked(service, lookup([1]))
        service.start()
        answers = await asyncio.gather(*waiting)
        await service.end()
        return [refused.value.status, refused.value.headers, len(answers)]

    assert asyncio.run(all_of_it()) == [429, {"Retry-After": "1"}, 2]


def test_bodies_that_do_not_come_are_not_taken_without_end(model: ServedModel) -> None:
    service = service_of(model, waiting=3, callers=1)

    async def all_of_it() -> int:
        slow = [asyncio.create_task(service.infer("m", "", None, never())) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(RequestRefused) as refused:
            await asked(service, lookup([1]))
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        service.start()
        await asked(service, lookup([1]))
        await service.end()
        return refused.value.status

    assert asyncio.run(all_of_it()) == 429


def test_bodies_of_all_requests_together_are_bounded(model: ServedModel) -> None:
    """Three requests of which two fit; what is held is given back with each answer."""
    body = lookup([1])
    service = service_of(model, body_bytes=len(body), held_bytes=2 * len(body))

    async def all_of_it() -> list[object]:
        waiting = [asyncio.create_task(asked(service, body)) for _ in range(2)]
        await until(lambda: service.waiting == 2)
        with pytest.raises(RequestRefused) as refused:
            await asked(service, body)
        service.start()
        answers = await asyncio.gather(*waiting)
        later = await asyncio.gather(*(asked(service, body) for _ in range(2)))
        await service.end()
        return [refused.value.status, refused.value.place, len(answers), len(later)]

    assert asyncio.run(all_of_it()) == [429, "body", 2, 2]


def test_one_body_may_be_as_large_as_the_bound_of_a_body(model: ServedModel) -> None:
    body = lookup([1])
    service = service_of(model, body_bytes=len(body), held_bytes=1)
    service.start()

    async def all_of_it() -> int:
        answer = await asked(service, body)
        await service.end()
        return len(answer.outputs)

    assert asyncio.run(all_of_it()) == 2


def test_a_request_whose_time_is_over_is_told_so(model: ServedModel) -> None:
    service = service_of(model, timeout_s=0.05)

    async def all_of_it() -> RequestRefused:
        with pytest.raises(RequestRefused) as refused:
            await asked(service, lookup([1]))  # nothing runs
        service.start()
        await service.end()
        return refused.value

    error = asyncio.run(all_of_it())
    assert error.status == 504
    assert error.hint


def test_a_service_that_ends_answers_what_waits_and_takes_no_more(model: ServedModel) -> None:
    service = service_of(model)

    async def all_of_it() -> tuple[int, str, RequestRefused]:
        waiting = [asyncio.create_task(asked(service, lookup([1]))) for _ in range(5)]
        await asyncio.sleep(0)  # all have come, and none waits yet
        service.start()
        await service.end()
        answers = await asyncio.gather(*waiting)
        with pytest.raises(RequestRefused) as refused:
            await asked(service, lookup([1]))
        return len(answers), service.not_ready, refused.value

    answered, reason, error = asyncio.run(all_of_it())
    assert (answered, error.status) == (5, 503)
    assert reason
    assert error.hint
