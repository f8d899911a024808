import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.limits import parse_case_limit, parse_limit
from pytest_ortbench.core.metrics import METRICS, metric_hint
from pytest_ortbench.core.patterned import fitting
from pytest_ortbench.core.quantity import Quantity
from tests.refused import refused


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


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("latency_p90<5", "'latency_p90 < 5 ms' or 'latency_p90 < 5 s'"),
        ("latency_p50: .5", "'latency_p50 <= .5 ms' or 'latency_p50 <= .5 s'"),
        ("session_create <= 2e3", "'session_create <= 2e3 ms'"),
        ("peak_rss <= 500", "'peak_rss <= 500 MB' or 'peak_rss <= 500 B'"),
        ("energy_per_inference < 3", "'energy_per_inference < 3 mJ'"),
    ],
)
def test_a_number_that_could_mean_two_units_asks_for_one(text: str, forms: str) -> None:
    with refused(UsageError, "has no unit", hint=forms):
        parse_limit(text, place="--ort-limits")


@pytest.mark.parametrize(
    "text", ["throughput >= 100", "accuracy_sqnr >= 60", "leaks <= 0", "power <= 5"]
)
def test_a_number_that_means_one_unit_needs_none(text: str) -> None:
    assert parse_limit(text, place="--ort-limits").text == text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("p99", "latency_p99"),
        ("P50", "latency_p50"),
        ("rss", "peak_rss"),
        ("memory", "peak_rss"),
        ("accuracy", "accuracy_sqnr"),
        ("fps", "throughput"),
        ("latency", "latency_p50"),
        ("latency_p9", "latency_p99"),
        ("top1", "accuracy_top1"),
        ("first", "first_inference"),
    ],
)
def test_the_metric_that_was_meant_is_named(written: str, meant: str) -> None:
    assert metric_hint(written).rpartition(" ")[2] == f"{meant!r}?"


_IDLE = [
    # signs
    ("latency_p90:-3ms", "no"),
    ("latency_p50 <= 0 ms", "no"),
    ("latency_p50 > 0 s", "every"),
    ("latency_p50 >= -1 ms", "every"),
    ("latency_p99 == -1 ms", "no"),
    ("throughput < 0 /s", "no"),
    ("throughput >= 0", "every"),
    ("peak_rss <= -1 MB", "no"),
    ("model_size >= 0 B", "every"),
    ("power <= -1 W", "no"),
    ("energy_per_inference >= -1 mJ", "every"),
    ("accuracy_max_abs < 0", "no"),
    # shares
    ("cpu_utilisation<=500%", "every"),
    ("cpu_utilisation <= 1", "every"),
    ("cpu_utilisation > 100 %", "no"),
    ("placement >= 95", "no"),
    ("placement: 100 %", "every"),
    ("placement >= 0 %", "every"),
    ("placement == 101 %", "no"),
    ("time_on_provider < 0", "no"),
    ("accuracy_top1 > 1", "no"),
    ("weight_zeros <= 130 %", "every"),
    ("task_map >= 50", "no"),
    # ranges of their own
    ("accuracy_cosine >= 1.01", "no"),
    ("accuracy_cosine >= -1", "every"),
    # yes or no
    ("accuracy_finite >= 2", "no"),
    ("accuracy_finite <= 1", "every"),
    ("accuracy_finite == 0.5", "no"),
    ("load_valid >= 0", "every"),
    ("leaks <= 1", "every"),
    ("leaks < 0", "no"),
]


@pytest.mark.parametrize(("text", "which"), _IDLE)
def test_a_limit_that_no_value_keeps_or_every_one_is_refused(text: str, which: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {which} value meets ") as raised:
        parse_limit(text, place="here")
    assert raised.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "warmup <= 0 s",
        "peak_rss <= 0",
        "leaks <= 0",
        "leaks == 0",
        "memory_growth <= 0 B",
        "memory_growth >= -1 MB",
        "energy_net_per_inference <= 0 J",
        "accuracy_sqnr >= -10 dB",
        "accuracy_cosine >= 1",
        "accuracy_finite == 1",
        "placement >= 100 %",
        "placement == 100 %",
        "cpu_utilisation <= 99 %",
        "task_metric >= 30",
        "task_ratio <= 120 %",
        "throughput > 0",
    ],
)
def test_a_limit_at_the_end_of_what_there_is_is_read(text: str) -> None:
    assert parse_limit(text, place="x").text == text


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("placement >= 95", "placement >= 95 %"),
        ("placement: 100 %", "placement >= 100 %"),
        ("cpu_utilisation <= 80", "cpu_utilisation <= 80 %"),
        ("accuracy_finite: 1", "accuracy_finite >= 1"),
    ],
)
def test_what_is_advised_is_a_limit(text: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_limit(text, place="x")
    assert f"'{meant}'" in (raised.value.hint or "")
    assert parse_limit(meant, place="x").text == meant


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
        "(the limit lies inside the interval: measure longer or in more processes to be sure)"
    )


def test_every_metric_has_a_direction_a_known_unit_and_its_own_column() -> None:
    assert {metric.better for metric in METRICS.values()} == {"lower", "higher"}
    assert len({metric.column for metric in METRICS.values()}) == len(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name
        better, bound = (">=", metric.reach.high) if metric.better == "higher" else ("<=", 1.0)
        written = 1.0 if bound == float("inf") else bound
        if metric.reach.high <= written and better == "<=":
            written /= 2
        unit = metric.unit if metric.unit in ("s", "J") else "B" if metric.unit == "bytes" else ""
        assert parse_limit(f"{name} {better} {written} {unit}", place="x").value == written


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


def test_a_broken_limit_shows_how_it_is_broken() -> None:
    limit = parse_limit("accuracy_cosine >= 0.99999", place="x")
    measured = Quantity(value=0.9999891, unit="1", low=0.999988, high=0.99999)
    number, bound = measured.beside(limit.value)
    assert (number, bound) == ("0.999989 [0.999988, 0.999990]", "0.999990")
    assert number in limit.explain(measured)
