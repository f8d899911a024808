import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import (
    FACTORS,
    amounts_apart,
    common_scale,
    decimals_apart,
    format_amount,
    parse_amount,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("30 ms", "s", 0.030),
        ("30ms", "s", 0.030),
        ("2.5 s", "s", 2.5),
        ("0.5", "s", 0.5),
        ("500 MB", "bytes", 500e6),
        ("1 MiB", "bytes", 1048576.0),
        ("95 %", "ratio", 0.95),
        ("0.95", "ratio", 0.95),
        ("1e3 /s", "1/s", 1000.0),
        ("-3", "1", -3.0),
    ],
)
def test_an_amount_is_read_in_si_units(text: str, unit: str, value: float) -> None:
    assert parse_amount(text, unit, place="here") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "ms", "3 parsecs", "30 MB", "1,5 ms", "inf s", "1e999 s"])
def test_a_bad_amount_names_value_and_place(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_amount(text, "s", place="--limit")
    assert str(raised.value).startswith("--limit: ")
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "unit", "hint"),
    [
        ("3 dB", "1", "Write 3 without a unit"),
        ("3.5x", "1", "Write 3.5 without a unit"),
        ("2h", "s", "Write 120min"),
        ("1.5d", "s", "Write 2160min"),
        ("three", "1", "Write e.g. '1'"),
        ("3 dB", "ratio", "Write 3 %"),
        ("much", "ratio", "Write e.g. '1 %'"),
        ("much", "bytes", "Write e.g. '1 B'"),
        ("fast", "s", "Write e.g. '1 s'"),
        ("3 ms", "dB", "Write 3 dB"),
    ],
)
def test_a_wrong_unit_names_those_that_fit(text: str, unit: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_amount(text, unit, place="--limit")
    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "12.3 ms"),
        (0.00099996, "s", "1.00 ms"),
        (0.0, "s", "0 ns"),
        (8.97e-6, "s", "8.97 µs"),
        (75.2, "s", "75.2 s"),
        (1234567, "bytes", "1.23 MB"),
        (12, "bytes", "12.0 B"),
        (0.954, "ratio", "95.4 %"),
        (7702.0, "1/s", "7.70 k/s"),
        (41.23, "dB", "41.2 dB"),
        (0.99951, "1", "1.00"),
    ],
)
def test_an_amount_is_shown_in_peoples_units(value: float, unit: str, text: str) -> None:
    assert format_amount(value, unit) == text


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_what_is_shown_can_be_read_back(value: float) -> None:
    shown = format_amount(value, "s", digits=6)
    assert parse_amount(shown, "s", place="here") == pytest.approx(value, rel=1e-5)


def test_every_unit_has_itself_or_a_bare_number() -> None:
    for unit, factors in FACTORS.items():
        assert 1.0 in factors.values(), unit


@pytest.mark.parametrize(
    ("values", "unit", "shared"),
    [
        ([0.0008, 0.0009, 0.0011], "s", (1e-6, "µs")),
        ([0.0009, 0.0011, 0.004], "s", (1e-3, "ms")),
        ([0.00038, 0.0009, 0.02], "s", (1e-3, "ms")),
        ([], "s", (1.0, "s")),
        ([14e6, 400e6], "bytes", (1e6, "MB")),
        ([0.5], "ratio", (0.01, "%")),
        ([90.0], "dB", (1.0, "dB")),
        ([3.0], "1", (1.0, "")),
    ],
)
def test_common_scale_is_shared_by_values_read_side_by_side(
    values: list[float], unit: str, shared: tuple[float, str]
) -> None:
    assert common_scale(values, unit) == shared


@pytest.mark.parametrize(
    ("text", "seconds"), [("50ms", 0.05), ("2 s", 2.0), ("1.5min", 90.0), ("7 µs", 7e-6)]
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text, place="--p99") == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("50", "'50' has no unit. Write 50ms or 50s"),
        ("0.5", "'0.5' has no unit. Write 0.5ms or 0.5s"),
        ("abc", "'abc' is not a time. Write e.g. 50ms"),
        ("", "'' is not a time. Write e.g. 50ms"),
        (
            "5MB",
            "'5MB' has the unit 'MB', but only ns, us, µs, ms, s, min are known. Write e.g. 5ms",
        ),
        (
            "1h",
            "'1h' has the unit 'h', but only ns, us, µs, ms, s, min are known. Write 60min",
        ),
        (
            "5m",
            "'5m' has the unit 'm', but only ns, us, µs, ms, s, min are known. Write 5min or 5ms",
        ),
        ("0ms", "'0ms' is not a time above 0. Write e.g. 50ms"),
        ("-5ms", "'-5ms' is not a time above 0. Write e.g. 50ms"),
        ("1e999s", "'1e999s' is not a time above 0. Write e.g. 50ms"),
        # No unit makes a time above 0 of these.
        ("0", "'0' is not a time above 0. Write e.g. 50ms"),
        ("-5", "'-5' is not a time above 0. Write e.g. 50ms"),
        ("1e999", "'1e999' is not a time above 0. Write e.g. 50ms"),
    ],
)
def test_a_duration_names_its_unit(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_duration(text, place="--p99")
    assert str(raised.value).startswith(f"--p99: {message}")


def test_a_duration_may_be_none_at_all_where_that_has_a_meaning() -> None:
    assert parse_duration("0s", place="--drain", may_be_zero=True) == 0.0
    assert parse_duration("5ms", place="--drain", may_be_zero=True) == 0.005
    for text in ("0", "-5ms", "-5", "1e999s"):
        with pytest.raises(UsageError) as raised:
            parse_duration(text, place="--drain", may_be_zero=True)
        assert raised.value.hint.startswith("Write 0ms or 0s" if text == "0" else "Write e.g. 50ms")


@pytest.mark.parametrize(
    ("value", "bound", "unit", "texts"),
    [
        (0.9999891, 0.99999, "1", ("0.999989", "0.999990")),
        (1.0, 0.99999, "1", ("1.0000", "0.99999")),
        (0.03, 0.03, "s", ("30.0 ms", "30.0 ms")),
        (0.0123, 0.02, "s", ("12.3 ms", "20.0 ms")),
        (0.0300004, 0.03, "s", ("30.0004 ms", "30.0000 ms")),
        (13631488, 13631489, "bytes", ("13.631488 MB", "13.631489 MB")),
        (0.0200003, 0.02, "ratio", ("2.00003 %", "2.00000 %")),
        (59.997, 60.0, "dB", ("59.997 dB", "60.000 dB")),
    ],
)
def test_two_amounts_have_the_digits_that_tell_them_apart(
    value: float, bound: float, unit: str, texts: tuple[str, str]
) -> None:
    assert amounts_apart(value, bound, unit) == texts


def test_decimals_tell_a_number_from_its_bound() -> None:
    assert decimals_apart(39.9, 40.0) == "39.9"
    assert decimals_apart(39.997, 40.0) == "39.997"
    assert decimals_apart(40.0, 40.0) == "40.0"
    assert decimals_apart(0.0004, 0.0) == "0.0004"
