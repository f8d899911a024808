"""Rows of options: found at the fields of a dataclass and of its bases."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pytest_ortbench.core.option import Keyword, option, option_rows


@dataclass(frozen=True, kw_only=True)
class Coffee:
    """One group of options."""

    beans: tuple[int, ...] = option(
        (1,),
        flag="--ort-coffee-beans",
        kind="list",
        metavar="N",
        help="beans",
        reader="math:sqrt",
        to="request.beans",
        keyword=Keyword(help="numbers", takes="numbers"),
    )
    cups: dict[str, int] = option({"small": 1}, kind="lines", help="cups", reader="math:sqrt")


@dataclass(frozen=True, kw_only=True)
class Water:
    """Another group, as one of a pass."""

    litres: float = option(
        0.5, flag="--ort-water", kind="float", help="litres", reader="math:sqrt", asks_for="water"
    )


@dataclass(frozen=True, kw_only=True)
class Breakfast(Water, Coffee):
    """Both groups joined, and a field that is no option."""

    places: tuple[str, ...] = ()


def test_groups_are_joined_as_bases() -> None:
    rows = {row.field: row for row in option_rows(Breakfast)}
    assert list(rows) == ["beans", "cups", "litres"]
    assert (rows["beans"].flag, rows["beans"].kind, rows["beans"].to) == (
        "--ort-coffee-beans",
        "list",
        "request.beans",
    )
    assert rows["litres"].asks_for == "water"
    assert Breakfast(litres=2.0).litres == 2.0
    assert Breakfast().beans == (1,)


def test_the_ini_key_comes_from_the_flag_or_else_from_the_field() -> None:
    beans, cups, litres = option_rows(Breakfast)
    assert (beans.ini, beans.ini_type) == ("ort_coffee_beans", "args")
    assert (cups.ini, cups.ini_type) == ("ort_cups", "linelist")
    assert (litres.ini, litres.ini_type) == ("ort_water", "float")


def test_each_value_has_a_default_of_its_own() -> None:
    one, other = Breakfast(), Breakfast()
    one.cups["large"] = 2
    assert other.cups == {"small": 1}
    assert option_rows(Breakfast)[1].default == {"small": 1}


def test_a_row_has_the_default_of_its_field() -> None:
    defaults = {field.name: getattr(Breakfast(), field.name) for field in fields(Breakfast)}
    assert {row.field: row.default for row in option_rows(Breakfast)} == {
        name: value for name, value in defaults.items() if name != "places"
    }
