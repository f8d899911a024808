"""Hints of the operator profile, each on a profile that is bound by one thing."""

from __future__ import annotations

import pytest

from pytest_ortbench.analysis.bottlenecks import hints, kind_share
from pytest_ortbench.core.profile import OperatorProfile, OperatorTime

MS = 1_000_000


def profile_of(
    *operators: tuple[str, float, str], run_ms: float = 10.0, plain_ms: float = 10.0, **more: int
) -> OperatorProfile:
    times = tuple(
        OperatorTime(op=op, provider="P", time_ns=round(ms * MS), nodes=2, kind=kind)
        for op, ms, kind in operators
    )
    known = {"node_count": 2 * len(times), "threads": 2, "cpus": 2, "runs": 10, **more}
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
            "bound by one operator: Conv takes 70% in 2 nodes",
            "lower precision",
        ),
        (
            profile_of(("Softmax", 7.0, "compute"), ("Add", 2.5, "compute")),
            "bound by one operator: Softmax takes 70%",
            "fused or cheaper",
        ),
        (
            profile_of(*BALANCED, ("MemcpyToHost", 1.5, "copy"), run_ms=11.0),
            "bound by transfer: 14% in 2 copies between devices",
            "placement",
        ),
        (
            profile_of(*BALANCED, ("Transpose", 4.0, "move"), run_ms=14.0, plain_ms=14.0),
            "bound by memory: 29% in operators that only move data (Transpose)",
            "layout",
        ),
        (
            profile_of(*BALANCED, run_ms=13.0, plain_ms=13.0),
            "bound by launch: 6 nodes of 1.58 ms on average, 27% of the run between them",
            "captured graph",
        ),
        (profile_of(*BALANCED, node_count=9000), "bound by launch: 9000 nodes of 1.06 µs", "fus"),
        (profile_of(*BALANCED, ("Cast", 0.5, "cast")), "5% in casts between precisions", "convert"),
        (profile_of(*BALANCED, threads=8), "8 threads on 2 CPUs", "--ort-threads=2"),
        (profile_of(*BALANCED, asynchronous=True), "the provider's kernels run on", "starting"),
        (profile_of(*BALANCED, plain_ms=7.0), "a run took 10.0 ms with the profiler", "7.00 ms"),
    ],
)
def test_what_bounds_a_run_is_said_with_its_share(
    profile: OperatorProfile, begins: str, says: str
) -> None:
    [hint] = hints(profile)
    assert hint.startswith(begins)
    assert says in hint


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
