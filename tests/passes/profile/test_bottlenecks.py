"""Hints of the operator profile, each on a profile that is bound by one thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime, Peak
from pytest_ortbench.passes.profile.numbers.bottlenecks import (
    copy_shares,
    dictionaries_ns,
    hints,
    kind_share,
    spinning_share,
)

MS = 1_000_000


#: 100 G multiply-accumulates and 20 GB a second.
PEAK = Peak(macs_per_s=100e9, bytes_per_s=20e9, provider="P", element="float")


def with_work(profile: OperatorProfile, **work: tuple[int, int]) -> OperatorProfile:
    """The profile with the multiply-accumulates and bytes of some operators."""
    operators = tuple(
        replace(each, macs=work[each.op][0], moved_bytes=work[each.op][1])
        if each.op in work
        else each
        for each in profile.operators
    )
    return replace(profile, operators=operators)


def profile_of(
    *operators: tuple[str, float, str], run_ms: float = 10.0, plain_ms: float = 10.0, **more: Any
) -> OperatorProfile:
    known = {"node_count": 2 * len(operators), "threads": 2, "cpus": 2, "runs": 10, **more}
    nodes = max(1, known["node_count"] // len(operators))
    times = tuple(
        OperatorTime(op=op, provider="P", time_ns=round(ms * MS), nodes=nodes, kind=kind)
        for op, ms, kind in operators
    )
    return OperatorProfile(
        run_ns=round(run_ms * MS),
        plain_ns=round(plain_ms * MS),
        operators=tuple(sorted(times, key=lambda each: -each.time_ns)),
        **known,
    )


BALANCED = (("Conv", 4.0, "compute"), ("MatMul", 3.0, "compute"), ("Add", 2.5, "compute"))


def test_nothing_stands_out() -> None:
    assert hints(profile_of(*BALANCED)) == ()
    assert hints(OperatorProfile(reason="crash: it died")) == ()


@pytest.mark.parametrize(
    ("profile", "begins", "says"),
    [
        (
            profile_of(("Conv", 7.0, "compute"), ("Add", 2.5, "compute")),
            "limited by one operator: Conv takes 70% in 2 nodes",
            "lower precision",
        ),
        (
            profile_of(("Softmax", 7.0, "compute"), ("Add", 2.5, "compute")),
            "limited by one operator: Softmax takes 70%",
            "fused or cheaper",
        ),
        (
            profile_of(*BALANCED, ("MemcpyToHost", 1.5, "copy"), run_ms=11.0),
            "limited by transfers: 14% in 2 copies between devices (0% to the device, 14% to the "
            "host)",
            "placement",
        ),
        (
            profile_of(
                *BALANCED,
                ("MemcpyFromHost", 2.0, "copy"),
                ("MemcpyToHost", 1.0, "copy"),
                run_ms=12.5,
                plain_ms=12.5,
            ),
            "limited by transfers: 24% in 4 copies between devices (16% to the device, 8% to the "
            "host)",
            "placement",
        ),
        (
            profile_of(*BALANCED, ("Transpose", 4.0, "move"), run_ms=14.0, plain_ms=14.0),
            "limited by memory: 29% in operators that only move data (Transpose)",
            "layout",
        ),
        (
            profile_of(*BALANCED, run_ms=13.0, plain_ms=13.0),
            "limited by the start of nodes: 6 nodes of 1.58 ms on average, 27% of the run "
            "between them",
            "captured graph",
        ),
        (
            profile_of(*BALANCED, node_count=9000),
            "limited by the start of nodes: 9000 nodes of 1.06 µs",
            "fus",
        ),
        (profile_of(*BALANCED, ("Cast", 0.5, "cast")), "5% in casts between precisions", "convert"),
        (profile_of(*BALANCED, threads=8), "8 threads on 2 CPUs", "--ort-threads=2"),
        (
            profile_of(*BALANCED, cpu_ns=20 * MS, unspun_ns=11 * MS, unspun_cpu_ns=12 * MS),
            "spinning: 40% of the CPU time is threads that wait for work",
            "--ort-spinning=off they sleep, and a run takes 11.0 ms in place of 10.0 ms",
        ),
        (
            profile_of(*BALANCED, macs=600_000_000, moved_bytes=10_000_000, peak=PEAK),
            "limited by compute: the run reaches 60% of what a large matrix product does here",
            "lower precision",
        ),
        (
            with_work(profile_of(*BALANCED, peak=PEAK), Conv=(0, 60_000_000), Add=(0, 30_000_000)),
            "limited by memory: 65% in operators that read and write about as fast as memory "
            "allows (Conv, Add)",
            "smaller types",
        ),
        (
            with_work(
                profile_of(("Conv", 7.0, "compute"), ("Add", 2.5, "compute"), peak=PEAK),
                Conv=(210_000_000, 1_000_000),
            ),
            "limited by one operator: Conv takes 70% in 2 nodes; it reaches 30% of the peak rate",
            "lower precision",
        ),
        (
            with_work(profile_of(*BALANCED, peak=PEAK), Conv=(520_000_000, 1_000_000)),
            "Conv reaches 130% of the peak rate of arithmetic, so something else ran while",
            "idle machine",
        ),
        (
            profile_of(("own_1", 9.0, "subgraph"), ("Add", 0.5, "compute")),
            "90% in 2 subgraphs that the provider compiled",
            "own tools",
        ),
        (profile_of(*BALANCED, asynchronous=True), "the provider's kernels continue", "starting"),
        (profile_of(*BALANCED, plain_ms=7.0), "a run took 10.0 ms with the profiler", "7.00 ms"),
    ],
)
def test_what_bounds_a_run_is_said_with_its_share(
    profile: OperatorProfile, begins: str, says: str
) -> None:
    [hint] = hints(profile)
    assert hint.startswith(begins)
    assert says in hint


@pytest.mark.parametrize(
    "profile",
    [
        profile_of(("QLinearConv", 7.0, "compute"), ("Add", 2.5, "compute")),
        profile_of(("MatMulInteger", 7.0, "compute"), ("Add", 2.5, "compute")),
        profile_of(("MatMulNBits", 7.0, "compute"), ("Add", 2.5, "compute")),
        profile_of(
            ("Conv", 7.0, "compute"), ("Add", 2.5, "compute"), peak=replace(PEAK, element="uint8")
        ),
        profile_of(
            *BALANCED,
            macs=600_000_000,
            moved_bytes=10_000_000,
            peak=replace(PEAK, element="uint8"),
        ),
    ],
)
def test_where_products_are_integers_no_lower_precision_is_advised(
    profile: OperatorProfile,
) -> None:
    [hint] = hints(profile)
    assert "lower precision" not in hint


def test_a_profiler_that_doubles_the_run_says_nothing_of_small_nodes() -> None:
    many = profile_of(*BALANCED, node_count=9000, plain_ms=4.0)
    assert [hint.split(":")[0] for hint in hints(many)] == [
        "a run took 10.0 ms with the profiler and 4.00 ms without"
    ]


def test_shares_are_of_the_whole_run() -> None:
    profile = profile_of(("Conv", 5.0, "compute"), ("Cast", 1.0, "cast"), ("Cast", 0.5, "cast"))
    assert kind_share(profile, "cast") == pytest.approx(0.15)
    assert profile.between_ns == 3.5 * MS
    assert OperatorProfile().share(5) == 0.0


def test_copies_count_by_their_direction():
    profile = profile_of(
        ("Conv", 5.0, "compute"), ("MemcpyFromHost", 2.0, "copy"), ("MemcpyToHost", 0.5, "copy")
    )
    assert copy_shares(profile) == (pytest.approx(0.2), pytest.approx(0.05))
    assert copy_shares(profile_of(*BALANCED)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("spun", "slept", "share"), [(20, 5, 0.75), (20, 22, 0.0), (None, 5, None), (20, None, None)]
)
def test_spinning_is_what_sleeping_saves(spun, slept, share):
    profile = profile_of(*BALANCED, cpu_ns=spun, unspun_ns=1, unspun_cpu_ns=slept)
    assert spinning_share(profile) == share


@pytest.mark.parametrize(
    "profile",
    [
        profile_of(*BALANCED, cpu_ns=20 * MS, unspun_ns=11 * MS, unspun_cpu_ns=18 * MS),
        profile_of(*BALANCED, macs=400_000_000, moved_bytes=10_000_000, peak=PEAK),
        with_work(profile_of(*BALANCED, peak=PEAK), Conv=(0, 30_000_000), Add=(0, 30_000_000)),
    ],
)
def test_what_is_far_from_a_ceiling_is_not_bound_by_it(profile):
    assert hints(profile) == ()


def with_nodes(profile: OperatorProfile, **nodes: int) -> OperatorProfile:
    """The profile with so many nodes of each operator."""
    operators = tuple(replace(each, nodes=nodes[each.op]) for each in profile.operators)
    return replace(profile, operators=operators, node_count=sum(nodes.values()))


def test_many_short_nodes_beside_one_long_one_are_no_bound() -> None:
    # 299 nodes of 1 µs and a product of 1 ms: 4.3 µs a node on average, and a fifth in short ones.
    times = (("MatMul", 1.0, "compute"), ("Add", 0.299, "compute"))
    few = with_nodes(profile_of(*times, run_ms=1.3, plain_ms=1.3), MatMul=1, Add=299)
    [hint] = hints(few)
    assert hint.startswith("limited by one operator: MatMul takes 77% in one node")
    # Half of the run in nodes of 1 µs is one, whatever stands beside.
    times = (("MatMul", 0.4, "compute"), ("Conv", 0.4, "compute"), ("Add", 0.9, "compute"))
    many = with_nodes(profile_of(*times, run_ms=1.8, plain_ms=1.8), MatMul=1, Conv=1, Add=900)
    [hint] = [text for text in hints(many) if "one operator" not in text]
    assert hint.startswith(
        "limited by the start of nodes: 902 nodes of 1.88 µs on average, 6% of the run"
    )


def test_a_model_of_one_node_is_not_told_to_fuse() -> None:
    one = profile_of(("MatMul", 4.0, "compute"), node_count=1)
    one = replace(one, operators=(replace(one.operators[0], nodes=1),))
    [hint] = [text for text in hints(one) if "one operator" not in text]
    assert hint == (
        "limited by the call: 60% of the run is outside its only node; a larger batch helps"
    )


@pytest.mark.parametrize(
    ("level", "advice"),
    [
        ("all", "a larger batch or a captured graph helps"),
        ("basic", "a larger batch, more fusion (--ort-graph-opt=all) or a captured graph helps"),
        ("", "a larger batch, more fusion (--ort-graph-opt=all) or a captured graph helps"),
    ],
)
def test_what_is_set_already_is_not_advised(level: str, advice: str) -> None:
    [hint] = hints(profile_of(*BALANCED, node_count=9000, graph_optimization_level=level))
    assert hint.endswith(f"; {advice}")


@pytest.mark.parametrize(
    ("plain_ms", "says"),
    [
        (14.0, "a run took 14.0 ms without the profiler and 10.0 ms with it, but the profiler can"),
        (12.9, ""),
        (7.8, ""),
        (7.0, "a run took 10.0 ms with the profiler and 7.00 ms without: small nodes look"),
    ],
)
def test_the_profiler_and_what_disturbed_the_runs_without_are_told_apart(
    plain_ms: float, says: str
) -> None:
    found = hints(profile_of(*BALANCED, plain_ms=plain_ms))
    assert [text.startswith(says) for text in found] == ([True] if says else [])


def test_no_share_above_all_of_it_without_a_word() -> None:
    [hint] = hints(with_work(profile_of(*BALANCED, peak=PEAK), Conv=(440_000_000, 1_000_000)))
    assert hint.startswith("Conv reaches 110% of the peak rate of arithmetic: more than the large")
    [hint] = hints(with_work(profile_of(*BALANCED, peak=PEAK), Add=(0, 65_000_000)))
    assert hint == (
        "Add reads and writes at 130% of the peak rate of memory: its values were still in a cache"
    )
    node = NodeTime(name="n", op="Conv", provider="P", time_ns=MS, macs=105_000_000, moved_bytes=9)
    [hint] = hints(replace(profile_of(*BALANCED, peak=PEAK), nodes=(node,)))
    assert hint.startswith("Conv reaches 105% of the peak")
    [hint] = hints(profile_of(*BALANCED, peak=PEAK, macs=1_020_000_000, moved_bytes=9))[1:]
    assert hint.startswith("the whole run reaches 102% of the peak")


def test_measurements_of_a_peak_that_disagree_are_said() -> None:
    unsteady = replace(PEAK, macs_trials_per_s=(42e9, 87e9, 60e9))
    [hint] = hints(profile_of(*BALANCED, peak=unsteady))
    assert hint.startswith("the peak rate of arithmetic was measured as 42.0 to 87.0 GMAC/s")
    [hint] = hints(profile_of(*BALANCED, peak=replace(PEAK, bytes_trials_per_s=(10e9, 14e9))))
    assert hint.startswith("the peak rate of memory was measured as 10.0 to 14.0 GB/s")
    assert not hints(profile_of(*BALANCED, peak=replace(PEAK, macs_trials_per_s=(70e9, 87e9))))


@pytest.mark.parametrize(
    ("outputs", "plain_ms", "behind_ms"),
    [(("probabilities",), 25.0, 15.0), (("probabilities",), 12.0, 0.0), ((), 25.0, 0.0)],
)
def test_dictionaries_that_python_makes_are_not_blamed_on_the_machine(
    outputs: tuple[str, ...], plain_ms: float, behind_ms: float
) -> None:
    profile = profile_of(*BALANCED, plain_ms=plain_ms, mapped_outputs=outputs)
    assert dictionaries_ns(profile) == behind_ms * MS
    told = [hint for hint in hints(profile) if "zipmap" in hint]
    assert len(told) == (1 if behind_ms else 0)
    if told:
        assert told[0].startswith("60% of a run (15.0 ms of 25.0 ms)")
        assert len(hints(profile)) == 1
