"""Sizes that a session is told: where they are known, where they can't be, and what says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case, InputSpec, Runtime, SessionConfig
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.planning.fixed_sizes import open_sizes, with_fixed_sizes
from pytest_ortbench.planning.matrix import Plan, Target, build_plan
from pytest_ortbench.planning.next_sizes import with_sizes
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.store.resume import plan_fingerprint
from tests.results_factory import make_case

Shape = tuple[int | str | None, ...] | None


def model_of(*shapes: Shape, kind: str = "tensor(float)") -> Model:
    return Model(
        name="m",
        path="/m/m.onnx",
        source="file",
        digest="d",
        size_bytes=1,
        inputs=tuple(
            TensorInfo(name=name, type=kind, shape=shape)
            for name, shape in zip("abc", shapes, strict=False)
        ),
        outputs=(TensorInfo(name="y", type="tensor(float)", shape=(1,)),),
    )


def case_of(*pairs: tuple[Shape, tuple[int, ...]], kind: str = "tensor(float)") -> Case:
    specs = tuple(
        InputSpec(name=name, type=kind, shape=fed, hint=ValueHint(kind="normal"))
        for name, (_, fed) in zip("abc", pairs, strict=False)
    )
    model = model_of(*(shape for shape, _ in pairs), kind=kind)
    return replace(make_case(model=model), inputs=specs)


@pytest.mark.parametrize(
    ("pairs", "sizes"),
    [
        # Nothing is open.
        ([((2, 3), (2, 3))], {}),
        ([(("N", 3), (2, 3))], {"N": 2}),
        # One symbol of several inputs, and several of one.
        ([(("N", "S"), (2, 7)), (("N", 4), (2, 4))], {"N": 2, "S": 7}),
        # An expression is a name like any other to ONNX Runtime.
        ([(("N", "P"), (1, 3)), (("N", "P + 1"), (1, 4))], {"N": 1, "P": 3, "P + 1": 4}),
        ([(("P",), (0,))], {"P": 0}),
        # A scalar.
        ([((), ()), (("N",), (5,))], {"N": 5}),
    ],
)
def test_sizes_by_symbol(pairs: list[tuple[Shape, tuple[int, ...]]], sizes: dict[str, int]) -> None:
    found = open_sizes(case_of(*pairs))
    assert (dict(found.sizes), found.reason) == (sizes, "")


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        # No name by which ONNX Runtime could be told.
        ([(("N", 3), (2, 3)), ((None, 4), (2, 4))], ["'b'", "0"]),
        ([((2, None), (2, 9))], ["'a'", "1"]),
        # Not even the number of dimensions is known.
        ([(None, (2, 3))], ["'a'"]),
        # One name, two sizes: files may hold that.
        ([(("N", 3), (2, 3)), (("N", 4), (5, 4))], ["'N'", "2 on", "'a'", "5 on", "'b'"]),
    ],
)
def test_why_sizes_are_not_known(
    pairs: list[tuple[Shape, tuple[int, ...]]], named: list[str]
) -> None:
    found = open_sizes(case_of(*pairs))
    assert dict(found.sizes) == {}
    assert [text for text in named if text not in found.reason] == []
    assert found.hint


def test_what_is_no_tensor_can_not_be_told() -> None:
    found = open_sizes(case_of((("N",), (3,)), kind="seq(tensor(float))"))
    assert "'a'" in found.reason


def test_an_input_that_is_not_fed_is_left_open() -> None:
    case = case_of((("N", 2), (3, 2)), (("M",), (4,)))
    assert dict(open_sizes(replace(case, inputs=case.inputs[:1])).sizes) == {"N": 3}


def test_sizes_that_change_are_not_fixed() -> None:
    case = case_of((("N", "S"), (1, 8)))
    soaked = replace(case, sampling=replace(case.sampling, soak_s=1.0, soak_dims={"S": (8, 16)}))
    written = replace(case, generation=Generation(engine="session", prompt_tokens=4, new_tokens=4))
    assert [bool(open_sizes(each).reason) for each in (case, soaked, written)] == [
        False,
        True,
        True,
    ]
    # Of another model, or without a soak.
    other = replace(case, sampling=replace(case.sampling, soak_s=1.0, soak_dims={"T": (8, 16)}))
    idle = replace(case, sampling=replace(case.sampling, soak_dims={"S": (8, 16)}))
    assert [bool(open_sizes(each).reason) for each in (other, idle)] == [False, False]


def planned(spec: str, *asked: str, shape: Shape = ("N", 4)) -> Plan:
    target = Target(runtime=Runtime(), providers=(parse_provider(spec),))
    return build_plan(PlanRequest(models=(), fix_dims=asked), [model_of(shape)], [target])


@pytest.mark.parametrize(
    ("spec", "asked", "case_id", "sizes"),
    [
        ("cpu", (), "m/native/cpu/b1", {}),
        ("cpu", ("on",), "m/native/cpu/b1/fix-dims:on", {"N": 1}),
        ("cpu", ("off",), "m/native/cpu/b1/fix-dims:off", {}),
        # What takes nodes of known sizes only is told them, and its id stays what it was.
        ("qnn:htp", (), "m/native/qnn:htp/b1", {"N": 1}),
        ("qnn:htp", ("off",), "m/native/qnn:htp/b1/fix-dims:off", {}),
        ("coreml", (), "m/native/coreml/b1", {"N": 1}),
        ("openvino", (), "m/native/openvino/b1", {}),
        ("qnn:htp~cpu", (), "m/native/qnn:htp_cpu/b1", {"N": 1}),
        ("cpu~openvino", (), "m/native/cpu_openvino/b1", {}),
    ],
)
def test_who_is_told(
    spec: str, asked: tuple[str, ...], case_id: str, sizes: dict[str, int]
) -> None:
    [entry] = planned(spec, *asked).entries
    assert entry.refusal is None
    assert (entry.case.case_id, entry.case.session.fixed_dims) == (case_id, sizes)


def test_both_positions_are_two_cases() -> None:
    entries = planned("cpu", "on", "off").entries
    assert [entry.case.session.fixed_dims for entry in entries] == [{"N": 1}, {}]
    assert len({entry.case.key for entry in entries}) == 2


def test_what_was_asked_for_and_can_not_be_is_refused() -> None:
    [entry] = planned("qnn:htp", "on", shape=("N", None)).entries
    assert entry.refusal is not None
    assert entry.refusal.kind == "unsupported"
    assert entry.case.session.fixed_dims == {}
    # Nobody asked: it is measured as it is.
    [entry] = planned("qnn:htp", shape=("N", None)).entries
    assert entry.refusal is None
    assert entry.case.session.fixed_dims == {}


def test_an_engine_has_no_session_to_tell() -> None:
    on, off = planned("tract", "on", "off").entries
    assert on.refusal is not None
    assert off.refusal is None


def test_other_default_sizes_are_told_again() -> None:
    [entry] = planned("qnn:htp", shape=("N", "L")).entries
    other = with_sizes(entry.case, {"L": 77})
    assert other is not None
    assert other.inputs[0].shape == (1, 77)
    assert other.session.fixed_dims == {"N": 1, "L": 77}


def test_a_plan_that_tells_no_size_is_that_of_earlier_versions() -> None:
    case = make_case()
    assert case.session == SessionConfig()
    told = replace(case, session=SessionConfig(fixed_dims={"N": 1}))
    assert plan_fingerprint([told]) != plan_fingerprint([case])
    assert plan_fingerprint([with_fixed_sizes(case)]) == plan_fingerprint([case])
