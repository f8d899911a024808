"""A changed model must not choose the sizes that it is judged at: those of its baseline count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.model import AxisRole, Model, TensorInfo
from pytest_ortbench.planning.baseline_sizes import differing_defaults_of, fed_alike, fed_as_stored
from pytest_ortbench.planning.matrix import Planned, Target, build_plan
from pytest_ortbench.planning.planner import named_as_later
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sides import PlannedPair, pair_cases

CURRENT = Target(runtime=Runtime(), providers=(Provider(alias="cpu", name="CPUExecutionProvider"),))

BATCH = (AxisRole(axis=0, role="batch"),)
MIXED = (AxisRole(axis=0, role="mixed", why="ReduceSum 'slow'"),)


def tensor(
    *shape: int | str | None, name: str = "x", roles: tuple[AxisRole, ...] = ()
) -> TensorInfo:
    return TensorInfo(name=name, type="tensor(float)", shape=shape, roles=roles)


def model(*inputs: TensorInfo, **changes: Any) -> Model:
    made = Model(
        name="net", path="/net.onnx", source="file", digest="new", size_bytes=1, inputs=inputs
    )
    return replace(made, **changes)


def planned(of: Model, **axes: Any) -> Planned:
    (entry,) = build_plan(PlanRequest(models=(), **axes), [of], [CURRENT]).entries
    return entry


def pair(before: Model, after: Model, **axes: Any) -> PlannedPair:
    return PlannedPair(baseline=planned(before, **axes), contender=planned(after, **axes))


def shapes(case: Case) -> list[tuple[int, ...]]:
    return [spec.shape for spec in case.inputs]


def origins(case: Case) -> dict[str, str]:
    return {size.symbol: size.origin for spec in case.inputs for size in spec.resolved}


OLD = model(tensor("n", 576, roles=BATCH), digest="old")
SUMMED = model(tensor("m", 576, roles=MIXED))


def test_a_contender_is_fed_the_default_of_its_baseline() -> None:
    before = pair(OLD, SUMMED)
    assert (shapes(before.baseline.case), shapes(before.contender.case)) == (
        [(1, 576)],
        [(128, 576)],
    )
    fed = fed_alike(before)
    assert shapes(fed.contender.case) == shapes(fed.baseline.case) == [(1, 576)]
    assert origins(fed.contender.case) == {"m": "baseline"}
    assert fed.contender.case.case_id == before.contender.case.case_id
    (size,) = differing_defaults_of(fed)
    assert (size.input, size.fed, size.baseline, size.contender) == (
        "x",
        (1, 576),
        (1, 576),
        (128, 576),
    )


def test_a_size_that_was_refused_is_told_as_it_was_measured() -> None:
    fed = fed_alike(
        pair(
            model(tensor("n", "length", roles=BATCH), digest="old"),
            model(tensor("n", "length", roles=MIXED)),
        )
    )
    (planned_input,) = fed.contender.case.inputs
    measured = (replace(planned_input, shape=(1, 64)),)
    (size,) = differing_defaults_of(fed, measured)
    assert (size.fed, size.baseline, size.contender) == ((1, 64), (1, 64), (128, 64))


def test_feeding_a_pair_again_changes_nothing() -> None:
    fed = fed_alike(pair(OLD, SUMMED))
    assert fed_alike(fed) == fed
    again = fed_alike(replace(fed, baseline=planned(OLD)))
    assert differing_defaults_of(again) == differing_defaults_of(fed)


def test_sides_of_the_same_defaults_stay_as_they_are() -> None:
    before = pair(OLD, model(tensor("n", 576, roles=BATCH)))
    fed = fed_alike(before)
    assert fed == before
    assert differing_defaults_of(fed) == ()


def test_what_the_user_sets_goes_before_both_defaults() -> None:
    before = pair(OLD, model(tensor("n", 576, roles=MIXED)), dims={"n": (64,)})
    fed = fed_alike(before)
    assert shapes(fed.contender.case) == [(64, 576)]
    assert differing_defaults_of(fed) == ()


@pytest.mark.parametrize("kind", ["git", "model"])
@pytest.mark.parametrize("rows", [1, 5])
def test_a_named_size_that_is_a_batch_on_one_side_alone_makes_a_pair(kind: str, rows: int) -> None:
    sides = [
        planned(model(tensor("n", 576, roles=roles), digest=digest), dims={"n": (rows,)})
        for digest, roles in (("old", BATCH), ("new", MIXED))
    ]
    for baseline, contender in (sides, sides[::-1]):
        assert baseline.case.case_id != contender.case.case_id
        pairing = pair_cases([contender], [baseline], kind)
        (made,) = pairing.pairs
        assert (pairing.added, pairing.vanished) == ((), ())
        fed = fed_alike(made, adopts=kind == "git")
        assert shapes(fed.baseline.case) == shapes(fed.contender.case) == [(rows, 576)]
        assert differing_defaults_of(fed) == ()


def test_cases_that_are_fed_other_shapes_make_no_pair() -> None:
    batched = model(tensor("n", 576, roles=BATCH), digest="old")
    pairing = pair_cases(
        [planned(SUMMED, dims={"m": (5,)})], [planned(batched, dims={"n": (4,)})], "git"
    )
    assert pairing.pairs == ()
    assert (len(pairing.added), len(pairing.vanished)) == (1, 1)


def test_sizes_of_a_catalogue_that_knows_the_baseline_alone() -> None:
    known = model(tensor("n", "length", roles=BATCH), digest="old", default_dims={"length": 16_000})
    fed = fed_alike(pair(known, model(tensor("n", "length", roles=BATCH))))
    assert shapes(fed.contender.case) == [(1, 16_000)]
    (size,) = differing_defaults_of(fed)
    assert (size.fed, size.contender) == ((1, 16_000), (1, 128))


def test_a_count_that_became_a_batch_is_fed_as_the_count() -> None:
    fed = fed_alike(pair(model(tensor("n", 576, roles=MIXED)), replace(OLD, digest="new")))
    case = fed.contender.case
    assert (shapes(case), case.batch) == ([(128, 576)], 1)
    assert case.no_batch  # one inference is no one item of 128


def test_a_size_that_the_contender_can_not_take_is_left_to_be_told() -> None:
    before = pair(OLD, model(tensor(128, 576)))
    assert fed_alike(before) == before
    ranks = pair(OLD, model(tensor("n", 576, 1, roles=BATCH)))
    assert fed_alike(ranks) == ranks


def test_a_size_that_the_graph_of_the_contender_fixes_is_fed_to_both_at_a_revision() -> None:
    fixed = model(tensor("n", "q", roles=BATCH), implied_dims={"q": 300})
    before = pair(model(tensor("n", "q", roles=BATCH), digest="old"), fixed)
    assert fed_alike(before) == before
    fed = fed_alike(before, adopts=True)
    assert shapes(fed.baseline.case) == shapes(fed.contender.case) == [(1, 300)]
    (size,) = differing_defaults_of(fed)
    assert (size.fed, size.baseline, size.contender) == ((1, 300), (1, 128), (1, 300))


def test_symbols_that_the_contender_ties_together_can_not_have_two_sizes() -> None:
    roles = (AxisRole(axis=0, role="unknown", tied_to="a"),)
    tied = model(tensor("a", 4, name="x"), tensor("b", 4, name="y", roles=roles))
    free = model(
        tensor("a", 4, name="x", roles=BATCH), tensor("b", 4, name="y", roles=MIXED), digest="old"
    )
    before = pair(free, tied)
    assert fed_alike(before) == before


def test_a_case_is_fed_as_a_stored_run_fed_it() -> None:
    stored = planned(OLD).case
    fed = fed_as_stored(planned(SUMMED), stored)
    assert shapes(fed.case) == [(1, 576)]
    assert [spec.shape for spec in fed.own_inputs] == [(128, 576)]
    assert fed_as_stored(fed, stored) == fed


def test_an_earlier_state_keeps_what_its_own_graph_says_of_its_axes() -> None:
    earlier = model(
        tensor(None, 576, roles=BATCH),
        tensor("k", 4, name="y", roles=(AxisRole(axis=0, role="batch", tied_to="x_dim_0"),)),
        digest="old",
        implied_dims={"k": 3},
    )
    later = model(tensor("m", 576, roles=MIXED), tensor("other", 4, name="y"))
    (found,) = named_as_later([earlier], {"/net.onnx": later})
    assert isinstance(found, Model)
    assert [info.shape for info in found.inputs] == [("m", 576), ("other", 4)]
    assert [info.roles for info in found.inputs] == [
        BATCH,
        (AxisRole(axis=0, role="batch", tied_to="m"),),
    ]
    assert found.implied_dims == {"other": 3}
