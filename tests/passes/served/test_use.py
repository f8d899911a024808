"""What a service tells of its steps, and how its use is shown."""

from __future__ import annotations

import pytest

from pytest_ortbench.passes.served.run import steps_told


@pytest.mark.parametrize(
    ("header", "steps"),
    [
        ("", {}),
        ("inference;dur=2.5", {"inference": 2.5}),
        ("read;dur=0.1, inference;desc=x;dur=2, batch;desc=4", {"read": 0.1, "inference": 2.0}),
        ("a;dur=nan, b;dur=inf, c;dur=-1, d;dur=x, ;dur=3, e", {}),
        (",".join(f"s{n};dur=1" for n in range(100)), {f"s{n}": 1.0 for n in range(20)}),
        ("s" * 50 + ";dur=1", {}),
        # No step of a request takes longer than the request.
        ("read;dur=4, inference;dur=4.001, queue;dur=1e300", {"read": 4.0}),
    ],
)
def test_steps_are_those_with_a_time_that_can_be(header: str, steps: dict[str, float]) -> None:
    assert steps_told(header, took_ns=4_000_000) == steps
