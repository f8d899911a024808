from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.placement import (
    CPU,
    is_fallback,
    is_partial,
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
