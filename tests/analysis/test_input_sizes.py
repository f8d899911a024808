"""The sizes that a case was really measured at."""

from __future__ import annotations

import dataclasses

from pytest_ortbench.analysis.input_sizes import ResolvedSize, fed_shapes, resolved_sizes
from pytest_ortbench.core.case import Case, InputSpec, SymbolSize
from pytest_ortbench.core.model import ValueHint
from tests.results_factory import make_case


def known(symbol: str, size: int, origin: str, how: str = "") -> SymbolSize:
    return SymbolSize(symbol=symbol, size=size, origin=origin, how=how or origin)


def fed(case: Case, *shapes: tuple[int, ...], resolved: tuple[SymbolSize, ...] = ()) -> Case:
    inputs = tuple(
        InputSpec(
            name=f"x{index}",
            type="tensor(float)",
            shape=shape,
            hint=ValueHint(kind="normal"),
            resolved=resolved,
        )
        for index, shape in enumerate(shapes)
    )
    return dataclasses.replace(case, inputs=inputs)


def test_every_symbol_but_the_batch_has_its_size_and_its_origin() -> None:
    resolved = (
        known("N", 3, "batch"),
        known("K", 5, "graph"),
        known("S", 7, "dims", "--ort-dims"),
        known("x_dim_3", 16, "default", "default: its meaning is not stated"),
        known("rows", 9, "catalogue"),
        known("a = (b)", 4, "file", "in x.npz"),
        known("2*S", 14, "computed"),
        known("", 0, "shape", "shape of x.npz"),
    )
    assert resolved_sizes(fed(make_case(dims={"S": 7}), (3, 5), resolved=resolved)) == {
        "S": ResolvedSize(size=7, origin="--ort-dims"),
        "K": ResolvedSize(size=5, origin="fixed by the graph"),
        "x_dim_3": ResolvedSize(size=16, origin="default: its meaning is not stated"),
        "rows": ResolvedSize(size=9, origin="catalogue"),
        "a = (b)": ResolvedSize(size=4, origin="in x.npz"),
    }


def test_sizes_of_a_preset_are_not_said_to_be_the_users() -> None:
    case = fed(make_case(knobs={"workload": "decode"}), (1, 1), resolved=(known("seq", 1, "dims"),))
    assert resolved_sizes(case) == {"seq": ResolvedSize(size=1, origin="workload")}


def test_a_refused_case_has_what_the_user_set() -> None:
    assert resolved_sizes(fed(make_case(dims={"H": 7}))) == {
        "H": ResolvedSize(size=7, origin="--ort-dims")
    }


def test_sizes_that_differ_between_cases_stand_side_by_side() -> None:
    cases = [fed(make_case(), (batch, 3, 224), (2,)) for batch in (8, 1)]
    assert fed_shapes(cases) == [("x0", ("[1|8, 3, 224]",)), ("x1", ("[2]",))]
    many = [fed(make_case(), (batch, 3)) for batch in range(1, 301)]
    assert fed_shapes([*many, fed(make_case(), (4,))]) == [("x0", ("[1…300, 3]", "[4]"))]
