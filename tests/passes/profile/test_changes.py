"""Which operators account for a change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.passes.profile.facts import OperatorProfile, OperatorTime
from pytest_ortbench.passes.profile.numbers.changes import BETWEEN, operator_changes
from pytest_ortbench.passes.profile.report import change_rows

CPU = "CPUExecutionProvider"


def profile(run_ns: int, **times: tuple[int, int]) -> OperatorProfile:
    return OperatorProfile(
        runs=5,
        run_ns=run_ns,
        operators=tuple(
            OperatorTime(op=op, provider=CPU, time_ns=time_ns, nodes=nodes)
            for op, (time_ns, nodes) in times.items()
        ),
    )


BEFORE = profile(1_000_000, Conv=(700_000, 12), Relu=(200_000, 12))
AFTER = profile(1_420_000, Conv=(1_000_000, 12), Clip=(250_000, 12), Cast=(50_000, 3))


def test_the_largest_change_comes_first_whichever_way_it_goes():
    changes = operator_changes([BEFORE], [AFTER])
    assert [(one.op, one.change_ns) for one in changes] == [
        ("Conv", 300_000),
        ("Clip", 250_000),
        ("Relu", -200_000),
        ("Cast", 50_000),
        (BETWEEN, 20_000),
    ]
    assert sum(one.change_ns for one in changes) == AFTER.run_ns - BEFORE.run_ns


def test_of_several_profiles_the_least_time_of_each_operator_counts():
    disturbed = profile(9_000_000, Conv=(600_000, 12), Relu=(5_000_000, 12))
    changes = {one.op: one for one in operator_changes([BEFORE, disturbed], [BEFORE])}
    conv, relu = changes["Conv"], changes["Relu"]
    assert (conv.before_ns, conv.after_ns) == (600_000, 700_000)
    assert (relu.before_ns, relu.after_ns) == (200_000, 200_000)


def test_a_side_without_a_profile_is_refused():
    with pytest.raises(ValueError, match="without a profile"):
        operator_changes([], [AFTER])


TIMES = st.dictionaries(
    st.sampled_from(["Conv", "Relu", "Gemm", "Cast"]),
    st.tuples(st.integers(0, 10**7), st.integers(1, 20)),
)


@given(TIMES, TIMES, st.integers(0, 10**6))
def test_swapped_sides_change_by_the_negative_and_changes_add_up(one, other, between):
    before, after = (
        profile(sum(time for time, _ in times.values()) + between, **times)
        for times in (one, other)
    )
    changes = operator_changes([before], [after])
    assert sum(change.change_ns for change in changes) == after.run_ns - before.run_ns
    swapped = operator_changes([after], [before])
    assert {(c.op, c.change_ns) for c in changes} == {(c.op, -c.change_ns) for c in swapped}


def test_rows_name_what_changed_and_add_up_to_the_run():
    rows = change_rows(operator_changes([BEFORE], [AFTER]), top=3)
    assert rows == [
        ["Conv (CPU)", "12", "700 µs", "1.00 ms", "+300 µs"],
        ["Clip (CPU)", "0 → 12", "0 ns", "250 µs", "+250 µs"],
        ["Relu (CPU)", "12 → 0", "200 µs", "0 ns", "-200 µs"],
        ["2 others", "0 → 3", "100 µs", "170 µs", "+70.0 µs"],
        ["the whole run", "24 → 27", "1.00 ms", "1.42 ms", "+420 µs"],
    ]
