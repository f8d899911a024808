from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.judgement import Outcome
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.placement import (
    CPU,
    is_fallback,
    is_partial,
    judge_placement,
    nodes_elsewhere,
    placement_ratio,
    time_ratio,
)

CUDA = "CUDAExecutionProvider"


def placed(provider: str = CUDA, **fields: object) -> Placement:
    return Placement(provider=provider, **{"executed": {}, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("placement", "fallback", "partial", "ratio"),
    [
        (placed(executed={CUDA: 3}), False, False, 1.0),
        (placed(executed={CUDA: 3, CPU: 1}), False, True, 0.75),
        (placed(executed={CPU: 4}), True, False, 0.0),
        (placed(executed={CUDA: 0, CPU: 4}), True, False, 0.0),
        # Shape nodes on the provider do not make up for computing nodes elsewhere.
        (placed(executed={CPU: 4}, shape_only={CUDA: 9}), True, False, 0.0),
        (placed(executed={CUDA: 1}, shape_only={CPU: 9}), False, False, 1.0),
        # Nothing computes anywhere.
        (placed(shape_only={CUDA: 2}), False, False, None),
        (placed(shape_only={CPU: 2}), True, False, None),
        (placed(), True, False, None),
        (placed(CPU), False, False, None),
        # A partition is one event for many nodes.
        (placed(executed={CUDA: 1, CPU: 1}, partitions=1), False, True, None),
        (placed(executed={CUDA: 1, CPU: 1}, partitions=1, nodes_on_provider=9), False, True, 0.9),
        (placed(executed={CUDA: 1}, partitions=1), False, False, 1.0),
    ],
)
def test_what_a_placement_says(
    placement: Placement, fallback: bool, partial: bool, ratio: float | None
) -> None:
    assert is_fallback(placement) is fallback
    assert is_partial(placement) is partial
    assert placement_ratio(placement) == ratio


def test_time_ratio() -> None:
    assert time_ratio(placed(time_ns={CUDA: 300, CPU: 100})) == 0.75
    assert time_ratio(placed(time_ns={CPU: 100})) == 0.0
    assert time_ratio(placed()) is None
    assert time_ratio(placed(time_ns={CPU: 0})) is None


counts = st.dictionaries(st.sampled_from([CUDA, CPU, "ggml"]), st.integers(0, 50))


@given(executed=counts, shape_only=counts, times=counts)
def test_shares_are_shares(
    executed: dict[str, int], shape_only: dict[str, int], times: dict[str, int]
) -> None:
    placement = placed(executed=executed, shape_only=shape_only, time_ns=times)
    for ratio in (placement_ratio(placement), time_ratio(placement)):
        assert ratio is None or 0 <= ratio <= 1
    if executed.get(CUDA):
        assert not is_fallback(placement)
        assert is_partial(placement) is bool(nodes_elsewhere(placement))
    assert not (is_fallback(placement) and is_partial(placement))


GOOD, BAD, UNJUDGED = Outcome.GOOD, Outcome.BAD, Outcome.UNJUDGED


@pytest.mark.parametrize(
    ("placement", "outcome"),
    [
        (None, UNJUDGED),
        (placed(), UNJUDGED),
        (placed(CPU), UNJUDGED),
        (placed(executed={CUDA: 0}), UNJUDGED),
        (placed(executed={CUDA: float("nan")}), UNJUDGED),
        (placed(executed={CUDA: 3}, cut_after=1_000_000), UNJUDGED),
        (placed(executed={CPU: 3}, cut_after=7), UNJUDGED),
        (placed(executed={CUDA: 3, CPU: 1}, cut_after=7), UNJUDGED),
        (placed(reason="timeout: it took too long"), UNJUDGED),
        (placed(executed={CPU: 3}), BAD),
        (placed(shape_only={CPU: 3}), BAD),
        (placed(executed={CUDA: 3}), GOOD),
        (placed(executed={CUDA: 3, CPU: 1}), GOOD),
        (placed(CPU, shape_only={CPU: 3}), GOOD),
    ],
)
def test_a_placement_is_judged_by_a_whole_profile_alone(
    placement: Placement | None, outcome: Outcome
) -> None:
    judgement = judge_placement(placement)
    assert (judgement.of, judgement.outcome) == ("placement", outcome)
    assert judgement.reason or judgement.is_good


@pytest.mark.parametrize(
    "missing", [{"cut_after": 5}, {"cut_after": 0}, {"reason": "crash: it died"}]
)
def test_what_is_not_whole_has_no_share(missing: dict[str, object]) -> None:
    placement = placed(executed={CUDA: 3}, time_ns={CUDA: 5}, **missing)
    assert placement_ratio(placement) is None
    assert time_ratio(placement) is None
    assert not is_fallback(placed(executed={CPU: 3}, **missing))
