"""The table of machines: what each costs, draws when idle, and how many are owned already."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.units import parse_duration
from pytest_ortbench.fleet.procurement.mix import MixPart, parse_mix, parse_rate, total_rate
from pytest_ortbench.schema.toml_text import read_toml

#: Hours of an average year.
HOURS_A_YEAR = 8766.0
#: Percentiles of which a limit may be, as they are written.
PERCENTS = {"p90": 90.0, "p95": 95.0, "p99": 99.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedMachine:
    """One kind of machine.

    Attributes:
        name: Its name in the table.
        host: Host name in the run documents.
        price: To buy one; ``None`` if it can't be bought.
        price_per_hour: To rent or house one; ``None`` if there is no such price.
        power_price: Of a kilowatt-hour; ``None``: power is part of the other prices.
        idle_power_w: Of the whole machine, at the wall, doing nothing; ``None`` if unknown.
        load_power_w: Of the whole machine at the wall under this load, read from a meter;
            ``None``: taken from the measured energy.
        units_owned: How many need not be bought.
        table_power_price: The table's price of a kilowatt-hour, which a rented machine does not
            take: its rent includes power as a rule.
    """

    name: str
    host: str
    price: float | None = None
    price_per_hour: float | None = None
    power_price: float | None = None
    idle_power_w: float | None = None
    load_power_w: float | None = None
    units_owned: int = 0
    table_power_price: float | None = None

    @property
    def is_rented(self) -> bool:
        """Whether it can only be rented."""
        return self.price is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is to be served, for how long, in which currency.

    Attributes:
        currency: Its name, for people.
        years: How long the machines serve; a price is spread over this time.
        rate_per_s: Requests a second that must be served; ``None``: no target. A request is one
            call of the case, with as many items as its batch size.
        limit_s: The latency that ``percent`` of the requests must keep, waiting included.
        percent: Which share of them, in per cent: one of :data:`PERCENTS`.
        machines: The table.
        mix: Models that are one workload, each with its part of the rate; empty for every workload
            by itself.
        spare: Machines beyond those that are needed, in case one fails.
    """

    currency: str = "units of money"
    years: float = 3.0
    rate_per_s: float | None = None
    limit_s: float | None = None
    percent: float = 99.0
    machines: tuple[PricedMachine, ...] = field(default=())
    mix: tuple[MixPart, ...] = ()
    spare: int = 0

    @property
    def months(self) -> float:
        """How many months the machines serve, each a twelfth of a year."""
        return 12 * self.years

    @property
    def has_target(self) -> bool:
        """Whether a rate and a latency are asked for."""
        return self.rate_per_s is not None and self.limit_s is not None

    @property
    def percentile(self) -> str:
        """The percentile that the limit is about, as it is written: ``p99``."""
        return f"p{self.percent:g}"

    @property
    def limit_text(self) -> str:
        """The limit as people write it: ``50 ms``, ``2 s``; empty without one."""
        limit_s = self.limit_s
        if limit_s is None:
            return ""
        return f"{limit_s:g} s" if limit_s >= 1 else f"{limit_s * 1e3:g} ms"

    @property
    def load_option(self) -> str:
        """The option that searches for the highest rate that keeps the limit."""
        return f"--ort-load=peak:{self.percentile}:{self.limit_text.replace(' ', '')}"

    @property
    def late_percent(self) -> float:
        """Which share of the requests may end later, in per cent."""
        return 100 - self.percent

    @property
    def rented_with_power(self) -> tuple[PricedMachine, ...]:
        """Rented machines whose rent is taken to include power, though the table has its price."""
        return tuple(
            machine
            for machine in self.machines
            if machine.power_price is None and machine.table_power_price
        )

    @property
    def bought_without_power(self) -> tuple[PricedMachine, ...]:
        """Machines to buy whose power has no price, beside rented ones, whose rent includes it."""
        is_any_rented = any(machine.is_rented for machine in self.machines)
        return self.without_power if is_any_rented else ()

    @property
    def without_power(self) -> tuple[PricedMachine, ...]:
        """Machines to buy whose power has no price, so that their cost leaves it out."""
        return tuple(
            machine
            for machine in self.machines
            if not machine.is_rented and machine.power_price is None
        )


_TOP = {"currency", "years", "power_price", "rate", "mix", "spare", "machines", *PERCENTS}
_NUMBERS = {
    "price": "price",
    "price_per_hour": "price_per_hour",
    "power_price": "power_price",
    "idle_power": "idle_power_w",
    "load_power": "load_power_w",
}
_KEYS = {"host", "units_owned", *_NUMBERS}

#: A number for each key, for messages.
_NUMBER_OF = {
    "years": "3",
    "price": "4200",
    "price_per_hour": "1.20",
    "power_price": "0.30",
    "idle_power": "80",
    "load_power": "250",
    "units_owned": "2",
    "spare": "1",
    "rate": "500",
}
_EXAMPLE = (
    "Write a line [machines.lab-1] with the name of the machine, and below it e.g. price = 4200"
)


def parse_machines(text: str, place: str) -> Terms:
    """Read the table of machines.

    Args:
        text: TOML.
        place: Where it stands, for messages.

    Raises:
        UsageError: if it is no TOML, has an unknown key, or a value that can't be.
    """
    document = read_toml(text, place=place)
    _known(document, _TOP, place)
    tables = document.get("machines")
    if isinstance(tables, list) and tables:
        raise UsageError(
            "a table of machines is [[machines]], which gives them no names",
            place=place,
            hint=f"In place of each line [[machines]], write {entry_header(_name_in(tables[0]))} "
            "with the name of its machine",
        )
    if not isinstance(tables, dict) or not tables:
        raise UsageError("the file contains no machine", place=place, hint=_EXAMPLE)
    years = _number(document, "years", place)
    if years == 0:
        raise UsageError(
            "years is 0", place=place, hint="Write a number of years above 0, e.g. years = 3"
        )
    currency = document.get("currency", "units of money")
    if not isinstance(currency, str) or not currency.strip():
        raise UsageError(
            f"currency is {currency!r}, not the name of a currency",
            place=place,
            hint='Write e.g. currency = "EUR"',
        )
    common = _number(document, "power_price", place)
    mix = _mix(document, place)
    machines = tuple(
        _machine(name, table, common, f"{place}, machines.{name}") for name, table in tables.items()
    )
    percent, limit_s = _limit(document, place)
    _refuse_shared_hosts(machines, place)
    return Terms(
        currency=currency,
        years=3.0 if years is None else years,
        rate_per_s=total_rate(mix) if mix else _rate(document, place),
        mix=mix,
        limit_s=limit_s,
        percent=percent,
        spare=_whole(document, "spare", place),
        machines=machines,
    )


def _name_in(table: object) -> str:
    """The name that a table without one in its first line holds, else that of an example."""
    name = table.get("name") if isinstance(table, dict) else None
    return name if isinstance(name, str) else "lab-1"


def entry_header(name: str) -> str:
    """Return the line that begins the entry of a machine: ``[machines.desk]``."""
    import tomlkit  # only where something is wrong

    return f"[machines.{tomlkit.key(name).as_string()}]"


def _refuse_shared_hosts(machines: Sequence[PricedMachine], place: str) -> None:
    names: dict[str, str] = {}
    for machine in machines:
        other = names.setdefault(machine.host, machine.name)
        if other != machine.name:
            raise UsageError(
                f"machines.{other} and machines.{machine.name} both have the host {machine.host!r}",
                place=place,
                hint="If one of them is wrong, correct it. If both machines have this name, leave "
                "host out of both entries, and write before each run the name of its entry: "
                f"'ortbench compare {other}=RUN1 {machine.name}=RUN2', with the id of a run in "
                "place of RUN1 and RUN2",
            )


def _mix(document: Mapping[str, object], place: str) -> tuple[MixPart, ...]:
    written = document.get("mix")
    if written is None:
        return ()
    if not isinstance(written, str):
        raise UsageError(
            f"mix is {written!r}, not text",
            place=place,
            hint='Write e.g. mix = "det:40/s,rec:120/s"',
        )
    if "rate" in document:
        raise UsageError(
            "both mix and rate are given, and each says how many requests come in all",
            place=place,
            hint="Keep the right one, and leave the other out",
        )
    return parse_mix(written, f"{place}, mix")


def _machine(name: str, table: object, common: float | None, place: str) -> PricedMachine:
    if not isinstance(table, dict):
        raise UsageError(
            f"{name} is {table!r}, not a table of keys",
            place=place,
            hint=f"Write {entry_header(name)} on one line, and price = {_price_in(table)} on the "
            "next",
        )
    _known(table, _KEYS, place)
    host = table.get("host", name)
    if not isinstance(host, str):
        raise UsageError(
            f"host is {host!r}, not text",
            place=place,
            hint="Write the name of the machine in quotes, e.g. host = "
            f'"{"lab-1" if _finite(host) is None else host}"',
        )
    owned = _whole(table, "units_owned", place)
    numbers = {field: _number(table, key, place) for key, field in _NUMBERS.items()}
    without = numbers["power_price"] is None
    is_rented = numbers["price"] is None
    if without and not is_rented:
        numbers["power_price"] = common
    if numbers["price"] is None and numbers["price_per_hour"] is None:
        raise UsageError(
            "neither price nor price_per_hour is given",
            place=place,
            hint="Write price for a machine that is bought, or price_per_hour for one that is "
            "rented. A machine that costs nothing has price = 0",
        )
    idle, load = numbers["idle_power_w"], numbers["load_power_w"]
    if load == 0:
        raise UsageError(
            "load_power is 0 W, but every machine needs power",
            place=place,
            hint="Write the watts that a meter showed, or leave load_power out",
        )
    if idle is not None and load is not None and load < idle:
        raise UsageError(
            f"load_power {load:g} W is below idle_power {idle:g} W",
            place=place,
            hint=f"If the two are swapped, write load_power = {idle:g} and idle_power = {load:g}. "
            "If not, write for both the watts that a meter at the wall socket shows",
        )
    return PricedMachine(
        name=name,
        host=host,
        units_owned=owned,
        table_power_price=common if is_rented and without else None,
        **numbers,
    )


def _price_in(value: object) -> str:
    """The number that stands in the place of an entry, else that of an example."""
    written = next(iter(value.split()), "") if isinstance(value, str) else repr(value)
    try:
        return written if 0 <= float(written) <= _MOST else _NUMBER_OF["price"]
    except ValueError:
        return _NUMBER_OF["price"]


def _known(table: Mapping[str, object], keys: set[str], place: str) -> None:
    for key in table:
        if key not in keys:
            limits = key[:1] == "p" and key[1:].isdecimal() and keys.intersection(PERCENTS)
            raise UsageError(
                f"the key {key!r} is not known",
                place=place,
                hint=f'Write one of {", ".join(PERCENTS)}, e.g. p99 = "50 ms"'
                if limits
                else did_you_mean(key, keys),
            )


#: Beyond any price, number or rate; and beyond any time in years and any power in watts.
_MOST = 1e12
_MOST_OF = {"years": 1000.0, "idle_power": 1e9, "load_power": 1e9}


def _number(table: Mapping[str, object], key: str, place: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    number, most = _finite(value), _MOST_OF.get(key, _MOST)
    if number is None or not 0 <= number <= most:
        rule = f"not a number from 0 to {most:,.0f}"
        raise UsageError(
            f"{key} is {_written(value)}, {rule}", place=place, hint=_as_number(key, value)
        )
    return number


def _whole(table: Mapping[str, object], key: str, place: str) -> int:
    """A number of machines; 0 where it is not written."""
    value = table.get(key, 0)
    number = _finite(value)
    if not isinstance(value, int) or number is None or not 0 <= number <= _MOST:
        raise UsageError(
            f"{key} is {_written(value)}, not a whole number from 0 to {_MOST:,.0f}",
            place=place,
            hint=_as_number(key, value, read=int),
        )
    return value


def _as_number(key: str, value: object, read: Callable[[str], float] = float) -> str:
    """Say how a number is written: without its quotes, within its range."""
    if not isinstance(value, str):
        number = _finite(value)
        if number is not None and 0 <= number <= _MOST_OF.get(key, _MOST):
            return (
                f"Write {key} = {int(number)}, or {key} = {int(number) + 1}"
                if (number % 1)
                else f"Write {key} = {int(number)}"
            )
        return f"Write a number from this range, e.g. {key} = {_NUMBER_OF[key]}"
    amount = next(iter(value.split()), "")
    try:
        fits = 0 <= read(amount) <= _MOST_OF.get(key, _MOST)
    except ValueError:
        fits = False
    if not fits:
        return f"Write a number without quotes, e.g. {key} = {_NUMBER_OF[key]}"
    return f"Remove the quotes: {key} = {amount}"


def _finite(value: object) -> float | None:
    """A number that can be reckoned with; ``None`` for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _written(value: object) -> str:
    """A value for a message, which thousands of digits would fill."""
    if isinstance(value, int) and _finite(value) is None and not isinstance(value, bool):
        return "a number of more than 308 digits"
    return repr(value)


def _rate(table: Mapping[str, object], place: str) -> float | None:
    """``rate = 500`` or ``rate = "30000/min"``."""
    value = table.get("rate")
    rate = (
        parse_rate(value, f"{place}, rate")
        if isinstance(value, str)
        else _number(table, "rate", place)
    )
    if rate == 0:
        raise UsageError(
            "rate is 0, but must be above 0",
            place=place,
            hint="Write how many requests a second have to be answered in all, e.g. rate = 500, or "
            "leave rate out",
        )
    return rate


def _limit(table: Mapping[str, object], place: str) -> tuple[float, float | None]:
    """``p99 = "50 ms"``; a bare number would leave the unit open."""
    given = [name for name in PERCENTS if name in table]
    if not given:
        return PERCENTS["p99"], None
    refuse_two_percentiles(given, place)
    (name,) = given
    value = table[name]
    if not isinstance(value, str):
        raise UsageError(
            f"{name} is {value!r}, "
            + ("not a time in quotes" if _finite(value) is None else "without a unit"),
            place=place,
            hint=f'Write e.g. {name} = "50 ms"'
            if _finite(value) is None
            else f'Write {name} = "{value} s" for seconds, or "{value} ms" for milliseconds',
        )
    return PERCENTS[name], parse_duration(value, place=f"{place}, {name}")


def refuse_two_percentiles(given: Sequence[str], place: str) -> None:
    """Refuse limits of several percentiles, of which one decides.

    Args:
        given: What is written, as it is written there.
        place: Where.

    Raises:
        UsageError: if there is more than one.
    """
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} are both given, but a machine is chosen by one percentile",
            place=place,
            hint=f"Keep one of them, e.g. {given[-1]}",
        )
