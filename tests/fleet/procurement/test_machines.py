from __future__ import annotations

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.procurement.machines import PricedMachine, parse_machines

TABLE = """
currency = "EUR"
years = 4
power_price = 0.25
rate = 500
p99 = "50 ms"

[machines.lab-1]
price = 4200
idle_power = 80
units_owned = 2

[machines.cloud]
host = "ip-10-0-0-7"
price_per_hour = 1.2
power_price = 0
"""


def test_every_key() -> None:
    terms = parse_machines(TABLE, "machines.toml")
    assert (terms.currency, terms.years, terms.rate_per_s, terms.limit_s) == ("EUR", 4, 500, 0.05)
    assert terms.machines == (
        PricedMachine(
            name="lab-1",
            host="lab-1",
            price=4200,
            power_price=0.25,
            idle_power_w=80,
            units_owned=2,
        ),
        PricedMachine(name="cloud", host="ip-10-0-0-7", price_per_hour=1.2, power_price=0),
    )


def test_rent_includes_power_unless_a_machine_says_otherwise() -> None:
    text = "power_price = 0.3\n[machines.own]\nprice = 9\n[machines.rent]\nprice_per_hour = 1\n"
    terms = parse_machines(text, "m.toml")
    assert [machine.power_price for machine in terms.machines] == [0.3, None]
    assert [machine.name for machine in terms.rented_with_power] == ["rent"]
    apart = parse_machines(f"{text}power_price = 0.2", "m.toml")
    assert [machine.power_price for machine in apart.machines] == [0.3, 0.2]
    assert apart.rented_with_power == ()
    # Housed: both prices; it is bought, and its power is paid as the table says.
    housed = parse_machines(
        "power_price = 0.3\n[machines.a]\nprice = 9\nprice_per_hour = 1", "m.toml"
    )
    assert housed.machines[0].power_price == 0.3


def test_a_bought_machine_without_a_power_price_stands_out_beside_a_rented_one() -> None:
    both = "[machines.own]\nprice = 9\n[machines.rent]\nprice_per_hour = 1\n"
    assert [machine.name for machine in parse_machines(both, "m.toml").bought_without_power] == [
        "own"
    ]
    assert parse_machines(f"power_price = 0\n{both}", "m.toml").bought_without_power == ()
    alone = parse_machines("[machines.own]\nprice = 9", "m.toml")
    assert alone.bought_without_power == ()
    assert len(alone.without_power) == 1


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("price = '1300'", "price = 1300"),
        ("price = '1300 EUR'", "price = 1300"),
        ("price = 3\nunits_owned = '2'", "units_owned = 2"),
        ("price = 3\nidle_power = '45.5 W'", "idle_power = 45.5"),
    ],
)
def test_a_number_in_quotes_is_shown_without_them(written: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_machines(f"[machines.a]\n{written}", "machines.toml")
    assert raised.value.hint.endswith(f": {hint}")


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("price = '-3'", "price"),
        ("price = 'nan'", "price"),
        ("price = 3\nunits_owned = '2.5'", "units_owned"),
    ],
)
def test_a_number_that_can_not_be_is_not_shown_without_its_quotes(written: str, key: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_machines(f"[machines.a]\n{written}", "machines.toml")
    step = raised.value.hint.rpartition("e.g. ")[2]
    parse_machines(f"[machines.a]\nprice_per_hour = 1\n{step}", "machines.toml")
    assert step.split()[0] == key


def test_a_rate_of_the_table_may_have_a_unit() -> None:
    table = "rate = '30000/min'\np99 = '5 ms'\n[machines.a]\nprice = 3"
    assert parse_machines(table, "m.toml").rate_per_s == 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("currency = ", "not valid TOML"),
        ("currency = 'EUR'", "the file contains no machine"),
        (
            "p96 = '1s'\n[machines.a]\nprice = 3",
            "'p96' is not known. Write one of p90, p95, p99",
        ),
        ("[machines.a]\nprize = 3", "'prize' is not known. Did you mean 'price'?"),
        ("curency = 'EUR'\n[machines.a]\nprice = 3", "'curency' is not known"),
        ("[machines.a]\nprice = 'cheap'", "price is 'cheap', not a number from 0"),
        ("[machines.a]\nprice = -1", "price is -1, not a number from 0"),
        ("[machines.a]\nprice = nan", "price is nan, not a number from 0"),
        (
            f"[machines.a]\nprice = 1{'0' * 309}",
            "price is a number of more than 308 digits, not a number from 0",
        ),
        (f"[machines.a]\nprice = 0x{'f' * 5000}", "price is a number of more than 308 digits"),
        (f"[machines.a]\nprice = {'9' * 5000}", "more than 4300 digits"),
        (
            f"[machines.a]\nprice = 3\nunits_owned = 1{'0' * 309}",
            "units_owned is a number of more than 308 digits, not a whole number from 0",
        ),
        ("[machines.a]\nprice = inf", "price is inf, not a number from 0 to 1,000,000,000,000"),
        ("[machines.a]\nprice = 1e15", "price is 1000000000000000.0, not a number from 0 to 1,"),
        ("[machines.a]\nprice = 100000000000000000000", "price is 100000000000000000000, not"),
        ("years = 1e15\n[machines.a]\nprice = 3", "not a number from 0 to 1,000"),
        ("rate = 1e15\n[machines.a]\nprice = 3", "not a number from 0 to 1,"),
        ("[machines.a]\nprice = 3\nidle_power = 1e12", "not a number from 0 to 1,000,000,000"),
        ("[machines.a]\nprice = 3\nunits_owned = 1000000000000000", "not a whole number from"),
        ("mix = 'det:1e400/s'\n[machines.a]\nprice = 3", "not a number above 0 and up to 1,"),
        ("mix = 'det:nan/s'\n[machines.a]\nprice = 3", "not a number above 0 and up to 1,"),
        ("[machines.a]\nprice = true", "price is True, not a number from 0"),
        ("[machines.a]\nidle_power = 3", "neither price nor price_per_hour is given"),
        ("[machines.a]\nprice = 3\nunits_owned = 1.5", "units_owned is 1.5, not a whole number"),
        ("years = 0\n[machines.a]\nprice = 3", "years is 0"),
        ("p99 = 0.05\n[machines.a]\nprice = 3", "p99 is 0.05, without a unit"),
        ("p99 = '50 MB'\n[machines.a]\nprice = 3", "has the unit 'MB'"),
        ("rate = 0\n[machines.a]\nprice = 3", "rate is 0"),
        ("machines = 3", "the file contains no machine"),
        ("[machines]\na = 3", "a is 3, not a table"),
        ("[machines.a]\nprice = 3\nidle_power = 9\nload_power = 8", "below idle_power"),
        (
            "[machines.a]\nprice = 3\nload_power = 0",
            "load_power is 0 W, but every machine needs power",
        ),
        ("[machines.a]\nprice = 3\nhost = 3", "host is 3, not text"),
        ("[machines.a]\nprice = 3\n[machines.b]\nprice = 3\nhost = 'a'", "have the host 'a'"),
        ("rate = '5/day'\n[machines.a]\nprice = 3", "not a number with /s"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_machines(text, "machines.toml")
    assert message in str(raised.value)
    assert str(raised.value).startswith("machines.toml")


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("[machines]\n'a b' = 37.5", ['[machines."a b"]', "price = 37.5"]),
        ("[machines.a]\nprice = 3\nhost = 12", ['host = "12"']),
        (
            "[machines.a]\nprice = 3\nidle_power = 9\nload_power = 8",
            ["load_power = 9", "idle_power = 8"],
        ),
        ("p99 = 70\n[machines.a]\nprice = 3", ['"70 s"', '"70 ms"']),
        ("[machines]\ndesk = '1800 EUR'", ["[machines.desk]", "price = 1800 "]),
        ("[[machines]]\nname = 'desk'\nprice = 3", ["[[machines]]", "[machines.desk]"]),
        ("spare = 2.0\n[machines.a]\nprice = 3", ["spare = 2"]),
        ("spare = 2.5\n[machines.a]\nprice = 3", ["spare = 2", "spare = 3"]),
    ],
)
def test_the_step_keeps_the_values_of_the_user(text: str, mended: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        parse_machines(text, "machines.toml")
    assert [part for part in mended if part not in raised.value.hint] == []


def test_no_unit_is_missing_where_a_limit_is_no_number() -> None:
    with pytest.raises(UsageError) as raised:
        parse_machines("p99 = ['50 ms']\n[machines.a]\nprice = 3", "machines.toml")
    assert "unit" not in raised.value.message


@pytest.mark.parametrize(("name", "percent"), [("p90", 90), ("p95", 95), ("p99", 99)])
def test_a_limit_is_of_one_percentile(name: str, percent: float) -> None:
    table = f'{name} = "200 ms"\nrate = 20\n[machines.a]\nprice = 1\n'
    terms = parse_machines(table, "machines.toml")
    assert (terms.percent, terms.limit_s, terms.percentile) == (percent, 0.2, name)
    with pytest.raises(UsageError) as caught:
        parse_machines('p50 = "1 ms"\n' + table, "machines.toml")
    assert "'p50'" in caught.value.message
    other = "p95" if name == "p99" else "p99"
    with pytest.raises(UsageError) as caught:
        parse_machines(f'{other} = "1 s"\n{table}', "machines.toml")
    assert {name, other} <= set(caught.value.message.split())
