"""Chains: what their placement says, which links ran nothing, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.analysis.chains import chain_words, nodes_by_link
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.links import LinkPlacement, earlier_places, reordered
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.placement import (
    idle_links,
    is_fallback,
    is_partial,
    nodes_elsewhere,
    placement_ratio,
    time_ratio,
)
from tests.results_factory import make_case, make_result, make_run
from tests.summarised import row_of

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
ALIASES = {CPU: "cpu", CUDA: "cuda", TENSORRT: "tensorrt"}


def chained(*names: str, **fields: Any) -> Placement:
    links = tuple(LinkPlacement(provider=name, label=ALIASES[name]) for name in names)
    return Placement(provider=names[0], links=links, **{"executed": {}, **fields})


@pytest.mark.parametrize(
    ("placement", "fallback", "elsewhere", "ratio", "idle"),
    [
        (chained(TENSORRT, CUDA, CPU, executed={TENSORRT: 2, CUDA: 1, CPU: 1}), False, 0, 1.0, ()),
        # The first link got nothing, but another one than the CPU did.
        (chained(TENSORRT, CUDA, CPU, executed={CUDA: 3, CPU: 1}), False, 0, 1.0, (0,)),
        # The CPU is what all are to be spared.
        (chained(TENSORRT, CUDA, CPU, executed={CPU: 4}), True, 0, 1.0, (0, 1)),
        (chained(CUDA, CPU, executed={CPU: 4}), True, 0, 1.0, (0,)),
        # That nothing is left to it is as it should be.
        (chained(TENSORRT, CUDA, CPU, executed={TENSORRT: 2, CUDA: 1}), False, 0, 1.0, ()),
        # Where it is the first link, it is asked for.
        (chained(CPU, CUDA, executed={CPU: 4}), False, 0, 1.0, (1,)),
        # A link that nobody wrote is elsewhere.
        (chained(TENSORRT, CUDA, executed={TENSORRT: 2, CUDA: 1, CPU: 1}), False, 1, 0.75, ()),
        (chained(TENSORRT, CUDA, executed={CPU: 3}), True, 3, 0.0, (0, 1)),
        (chained(CUDA, CPU), True, 0, None, ()),
        (chained(CPU, CUDA), False, 0, None, ()),
        # Partitions stand for nodes that the assignment counts.
        (
            chained(TENSORRT, CUDA, executed={TENSORRT: 1, CUDA: 1, CPU: 1}, partitions=1),
            False,
            1,
            None,
            (),
        ),
        (
            chained(
                TENSORRT,
                CUDA,
                executed={TENSORRT: 1, CUDA: 1, CPU: 1},
                partitions=1,
                nodes_on_provider=9,
            ),
            False,
            1,
            0.9,
            (),
        ),
        # Nothing is claimed of a profile that broke off, or that there is none of.
        (chained(CUDA, CPU, cut_after=7, seen={CPU: 3}), False, 0, None, ()),
        (chained(CUDA, CPU, reason="timeout"), False, 0, None, ()),
    ],
)
def test_what_the_placement_of_a_chain_says(
    placement: Placement,
    fallback: bool,
    elsewhere: int,
    ratio: float | None,
    idle: tuple[int, ...],
) -> None:
    assert is_fallback(placement) is fallback
    assert nodes_elsewhere(placement) == elsewhere
    assert is_partial(placement) is bool(elsewhere and not fallback)
    assert placement_ratio(placement) == ratio
    assert idle_links(placement) == idle


def test_time_is_that_of_all_links() -> None:
    times = {TENSORRT: 500, CUDA: 300, CPU: 200}
    assert time_ratio(chained(TENSORRT, CUDA, executed={CUDA: 1}, time_ns=times)) == 0.8


def links(*names: str) -> tuple[Provider, ...]:
    return tuple(Provider(alias=ALIASES[name], name=name) for name in names)


def test_an_idle_link_is_tried_ahead_of_those_that_computed_the_nearest_first() -> None:
    chain = links(TENSORRT, CUDA, CPU)
    assert list(earlier_places(chain, 2, {TENSORRT: 1, CUDA: 1})) == [1, 0]
    assert list(earlier_places(chain, 1, {TENSORRT: 1, CPU: 1})) == [0]
    # All nodes were offered to it, and it took none.
    assert list(earlier_places(chain, 1, {CPU: 4})) == []
    assert list(earlier_places(chain, 0, {CUDA: 4})) == []


def test_one_link_moves_and_the_others_keep_their_order() -> None:
    assert reordered("abcd", 3, 1) == ("a", "d", "b", "c")
    assert reordered("abcd", 2, 0) == ("c", "a", "b", "d")
    assert reordered("ab", 1, 1) == ("a", "b")


def idle_second(**fields: Any) -> LinkPlacement:
    return LinkPlacement(provider=CUDA, label="cuda", **fields)


@pytest.mark.parametrize(
    ("link", "named"),
    [
        (idle_second(idle="taken", order="cuda~cpu", executed=3), ["cuda~cpu", "3"]),
        (idle_second(idle="none"), ["cuda"]),
        (idle_second(idle="unknown", reason="crash: SIGSEGV"), ["crash: SIGSEGV"]),
    ],
)
def test_an_idle_link_is_flagged_and_named(link: LinkPlacement, named: list[str]) -> None:
    first = LinkPlacement(provider=CPU, label="cpu")
    placement = Placement(provider=CPU, executed={CPU: 4}, links=(first, link))
    result = make_result(placement=placement)
    [flag] = [flag for flag in flags_of(result) if flag.name == "IDLE-LINK"]
    assert [text for text in named if text not in flag.detail] == []
    assert nodes_by_link(placement) == {"cpu": 4, "cuda": 0}
    assert flag.detail in chain_words(result)
    assert row_of(result, make_run([result]))["nodes_by_link"] == "cpu:4 cuda:0"


def test_a_provider_by_itself_has_no_links() -> None:
    result = make_result(case=make_case())
    assert result.placement is not None
    assert idle_links(result.placement) == ()
    assert chain_words(result) == ""
    assert row_of(result, make_run([result]))["nodes_by_link"] is None
    assert "IDLE-LINK" not in [flag.name for flag in flags_of(result)]


def test_a_row_of_a_chain_names_all_links() -> None:
    first, *others = links(TENSORRT, CUDA, CPU)
    case = replace(make_case(), provider=replace(first, device="1", then=tuple(others)))
    result = make_result(case=case)
    row = row_of(result, make_run([result]))
    assert (row["provider"], row["device"]) == ("tensorrt:1~cuda~cpu", None)
