import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.limits import parse_case_limit, parse_limit
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.patterned import fitting
from pytest_ortbench.core.quantity import Quantity


@pytest.mark.parametrize(
    ("text", "metric", "op", "value"),
    [
        ("latency_p90 <= 30 ms", "latency_p90", "<=", 0.030),
        ("latency_p90<=30ms", "latency_p90", "<=", 0.030),
        ("peak_rss: 500 MB", "peak_rss", "<=", 500e6),
        ("peak_rss 500 MB", "peak_rss", "<=", 500e6),
        ("placement:>=95%", "placement", ">=", 0.95),
        ("accuracy_cosine >= 0.999", "accuracy_cosine", ">=", 0.999),
        ("throughput > 100 /s", "throughput", ">", 100.0),
    ],
)
def test_a_limit_is_read(text: str, metric: str, op: str, value: float) -> None:
    limit = parse_limit(text, place="marker")
    assert (limit.metric.name, limit.op) == (metric, op)
    assert limit.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latncy_p90 <= 30 ms", "Did you mean 'latency_p90'?"),
        ("latency_p90 <= 30 MB", "'MB'"),
        ("latency_p90 <= soon", "is not a number"),
        ("", "is not a limit"),
        ("<= 3", "is not a limit"),
        ("latency_p90 <=", "is not a limit"),
        ("latency_p90 =< 3 ms", "is not a limit"),
    ],
)
def test_a_bad_limit_is_one_clear_message(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_limit(text, place="marker of test_x")
    message = str(raised.value)
    assert said in message
    assert message.startswith("marker of test_x: ")
    assert "\n" not in message


def _quantity(value: float, low: float | None = None, high: float | None = None) -> Quantity:
    return Quantity(value=value, unit="s", low=low, high=high)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("latency_p50 <= 10 ms", 0.010, True),
        ("latency_p50 < 10 ms", 0.010, False),
        ("latency_p50 >= 10 ms", 0.0101, True),
        ("latency_p50 <= 10 ms", 0.0101, False),
    ],
)
def test_a_limit_holds_or_not(text: str, value: float, holds: bool) -> None:
    assert parse_limit(text, place="x").holds(_quantity(value)) is holds


def test_the_message_states_value_interval_and_limit() -> None:
    limit = parse_limit("latency_p50 <= 10 ms", place="x")
    assert limit.explain(_quantity(0.0120, 0.0118, 0.0123)) == (
        "latency_p50 is 12.0 ms [11.8 ms, 12.3 ms], the limit is <= 10.0 ms"
    )
    assert limit.explain(_quantity(0.0101, 0.0099, 0.0103)).endswith(
        "(the limit lies inside the interval: measure longer, or in more processes, to be sure)"
    )


def test_every_metric_has_a_direction_a_known_unit_and_its_own_column() -> None:
    assert {metric.better for metric in METRICS.values()} == {"lower", "higher"}
    assert len({metric.column for metric in METRICS.values()}) == len(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert parse_limit(f"{name} <= 1", place="x").value == 1.0


@pytest.mark.parametrize(
    ("text", "case_id", "fits"),
    [
        ("latency_p90:30ms", "resnet50/native/cpu/b1", True),
        ("resnet50@latency_p90:30ms", "resnet50/native/cpu/b1", True),
        ("resnet*/b8 @ latency_p90 <= 30 ms", "resnet50/native/cpu/b8", True),
        ("resnet*/b8 @ latency_p90 <= 30 ms", "resnet50/native/cpu/b1", False),
        ("fp16@latency_p90:30ms", "resnet50/native/cpu/b1", False),
    ],
)
def test_a_limit_may_name_its_cases(text: str, case_id: str, fits: bool) -> None:
    found = parse_case_limit(text, place="--ort-limits")
    assert (found.limit.metric.name, found.limit.op, found.limit.value) == (
        "latency_p90",
        "<=",
        0.03,
    )
    assert fitting([found], case_id) == ([found] if fits else [])
