"""Wire format: what goes over it comes out the same, and what does not fit is refused."""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import math
import struct
import types
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.core.case import Case, SessionConfig
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    CaseResult,
    Failure,
    Memory,
    OrderStatistic,
    OutputCheck,
    Placement,
    RuntimeInfo,
    WarmUp,
)
from pytest_ortbench.schema.case_questions import Open, Opened, TimeBlock
from pytest_ortbench.schema.protocol import (
    Close,
    PhaseEntered,
    Refusal,
    pack_answer,
    pack_question,
    unpack_answer,
    unpack_question,
)
from pytest_ortbench.schema.runtime_questions import Probed
from pytest_ortbench.schema.wire import (
    WireError,
    decode_frame,
    encode_frame,
    from_plain,
    new_token,
    to_plain,
)


@functools.cache
def strategy_of(annotation: object) -> st.SearchStrategy[typing.Any]:
    """Values of one type that core uses."""
    scalars = {
        bool: st.booleans(),
        int: st.integers(),
        float: st.floats(allow_nan=False),
        str: st.text(max_size=8),
        type(None): st.none(),
    }
    if annotation in scalars:
        return scalars[annotation]  # type: ignore[index]
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        hints = typing.get_type_hints(annotation)
        fields = {f.name: strategy_of(hints[f.name]) for f in dataclasses.fields(annotation)}
        return st.builds(annotation, **fields)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is types.UnionType:
        return st.one_of(*map(strategy_of, arguments))
    if origin is dict:
        return st.dictionaries(st.text(max_size=4), strategy_of(arguments[1]), max_size=2)
    assert origin is tuple
    if arguments[-1] is ...:
        return st.lists(strategy_of(arguments[0]), max_size=3).map(tuple)
    return st.tuples(*map(strategy_of, arguments))


@pytest.mark.parametrize(
    "cls",
    [Case, Model, Block, WarmUp, Memory, Accuracy, Placement, OutputCheck, RuntimeInfo, Failure],
)
@settings(max_examples=10)
@given(data=st.data())
def test_core_types_survive_the_journey(cls: type, data: st.DataObject) -> None:
    value = data.draw(strategy_of(cls))
    arrived = from_plain(cls, json.loads(json.dumps(to_plain(value))))
    assert arrived == value
    assert [type(getattr(arrived, f.name)) for f in dataclasses.fields(cls)] == [
        type(getattr(value, f.name)) for f in dataclasses.fields(cls)
    ]


@settings(max_examples=5)
@given(data=st.data())
def test_a_whole_result_survives_the_journey(data: st.DataObject) -> None:
    value = data.draw(strategy_of(CaseResult))
    assert from_plain(CaseResult, json.loads(json.dumps(to_plain(value)))) == value


@pytest.mark.parametrize("message", [Open, Close, TimeBlock])
@settings(max_examples=10)
@given(data=st.data())
def test_questions_survive_the_journey(message: type, data: st.DataObject) -> None:
    value = data.draw(strategy_of(message))
    assert unpack_question(json.loads(json.dumps(pack_question(value)))) == value


@pytest.mark.parametrize("message", [Opened, Probed, Refusal, PhaseEntered, Block])
@settings(max_examples=10)
@given(data=st.data())
def test_answers_survive_the_journey(message: type, data: st.DataObject) -> None:
    value = data.draw(strategy_of(message))
    assert unpack_answer(json.loads(json.dumps(pack_answer(value))), message) == value


def test_sizes_symbols_and_unset_axes_keep_their_types() -> None:
    info = TensorInfo(name="x", type="tensor(float)", shape=("N", 3, None, "3"))
    assert from_plain(TensorInfo, to_plain(info)).shape == ("N", 3, None, "3")


def test_a_whole_number_in_a_float_field_arrives_as_float() -> None:
    arrived = from_plain(OrderStatistic, {"percent": 50, "value_ns": 1})
    assert arrived.percent == 50.0
    assert type(arrived.percent) is float


def test_missing_fields_take_their_defaults() -> None:
    assert from_plain(SessionConfig, {}) == SessionConfig()


@pytest.mark.parametrize("count", [0, 1, 63, 64, 20_000])
def test_durations_travel_whole_whatever_their_number(count: int) -> None:
    block = Block(durations_ns=tuple(range(-5, count - 5)), wall_ns=1, cpu_ns=1)
    frame = encode_frame("t", to_plain(block))
    assert from_plain(Block, decode_frame("t", frame)[1]) == block


def test_many_durations_travel_packed_unless_64_bits_are_too_few() -> None:
    values = (2**63 - 1, -(2**63), *range(62))
    assert to_plain(values) == {
        "int64": base64.b64encode(struct.pack("<64q", *values)).decode("ascii")
    }
    beyond = (2**63, *range(63))
    assert to_plain(beyond) == list(beyond)
    assert from_plain(tuple[float, ...], to_plain(values))[2:4] == (0.0, 1.0)


@pytest.mark.parametrize("packed", [{"int64": "AAAA"}, {"int64": "A"}, {"int64": 3}, {"int32": ""}])
def test_broken_packed_durations_are_refused(packed: dict[str, object]) -> None:
    plain = {"durations_ns": packed, "wall_ns": 1, "cpu_ns": 1}
    with pytest.raises(WireError, match=r"Block\.durations_ns: "):
        from_plain(Block, plain)  # type: ignore[arg-type]  # what a broken worker may send


def test_infinity_travels() -> None:
    assert decode_frame("t", encode_frame("t", to_plain(math.inf))) == (True, math.inf)


@pytest.mark.parametrize(
    ("cls", "plain", "place"),
    [
        (TimeBlock, {"iterations": "7"}, "TimeBlock.iterations: str '7' is not int"),
        (TimeBlock, {"iterations": True}, "TimeBlock.iterations: bool 'True' is not int"),
        (TimeBlock, {"iterations": 7.0}, "TimeBlock.iterations: float '7.0' is not int"),
        (TimeBlock, [], "TimeBlock: list '[]' is not TimeBlock"),
        (TimeBlock, {"iterations": 1, "more": 2}, "TimeBlock: unknown field 'more'"),
        (TimeBlock, {}, "iterations"),
        (Block, {"durations_ns": [1, "2"], "wall_ns": 1, "cpu_ns": 1}, "durations_ns[1]"),
        (SessionConfig, {"entries": {"a": 1}}, "SessionConfig.entries['a']: int '1' is not str"),
        (SessionConfig, {"enable_mem_pattern": "yes"}, "is not bool | NoneType"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    cls: type, plain: dict[str, object], place: str
) -> None:
    with pytest.raises(WireError) as caught:
        from_plain(cls, plain)  # type: ignore[arg-type]
    assert place in str(caught.value)


def test_what_can_not_travel_is_refused_with_its_place() -> None:
    with pytest.raises(WireError, match=r"\.entries\['a'\]: set "):
        to_plain(SessionConfig(entries={"a": {1}}))  # type: ignore[dict-item]
    with pytest.raises(WireError, match="key 1 "):
        to_plain({1: 2})


@pytest.mark.parametrize("plain", [None, [], {}, {"message": "Open"}, {"message": 1, "value": 2}])
def test_what_is_no_message_is_refused(plain: object) -> None:
    with pytest.raises(WireError, match="message"):
        unpack_question(plain)  # type: ignore[arg-type]


def test_questions_and_answers_are_not_mixed_up() -> None:
    with pytest.raises(WireError, match="unknown answer 'Close'"):
        unpack_answer(pack_question(Close()), Block)
    with pytest.raises(WireError, match="unknown question 'PhaseEntered'"):
        unpack_question(pack_answer(PhaseEntered(phase="first")))
    with pytest.raises(WireError, match="unknown field"):
        unpack_answer(pack_answer(Probed(placements={})), Block)


def test_nothing_to_report_is_an_answer() -> None:
    assert unpack_answer(pack_answer(None), type(None)) is None
    with pytest.raises(WireError, match="null"):
        unpack_answer(pack_answer(Probed(placements={})), type(None))


@given(st.text())
def test_a_frame_is_one_line_of_ascii(text: str) -> None:
    frame = encode_frame("token", text)
    assert frame.isascii()
    assert frame.count(b"\n") == 1
    assert decode_frame("token", frame) == (True, text)


def test_lines_of_others_are_no_frames() -> None:
    token = new_token()
    assert decode_frame(token, b"Welcome to host\n") == (False, None)
    assert decode_frame(token, encode_frame(new_token(), 1)) == (False, None)


def test_a_banner_without_a_line_end_does_not_hide_the_frame() -> None:
    assert decode_frame("t0k3n", b"password: " + encode_frame("t0k3n", [1])) == (True, [1])


def test_a_broken_frame_is_an_error() -> None:
    with pytest.raises(WireError, match="broken frame"):
        decode_frame("t", b't {"message": \n')


def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(20)}) == 20
