"""Machines of the table that no run is of, and answers that are about one thing each."""

from __future__ import annotations

import re

import click
import pytest

from tests.cli.test_compare import of

TABLE = """
currency = "EUR"
[machines.desk]
price_per_hour = 0.04
[machines.rakc]
price_per_hour = 0.1
[machines.zzz]
price = 5
"""


def compared(tool, store, tmp_path, *more):
    (tmp_path / "machines.toml").write_text(TABLE.replace("rakc", "rack"))
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]
    return tool("compare", *runs, "--machines=machines.toml", *more)


def test_a_misspelt_machine_ends_the_call(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(TABLE)
    ended = tool(
        "compare", store(of("desk", 1.0)), store(of("rack", 0.5)), "--machines=machines.toml"
    )
    assert (ended.code, ended.out) == (2, "")
    assert "[machines.rack]" in ended.error.hint


def test_a_machine_without_a_run_is_said_once(tool, store, tmp_path):
    # The page has its first warnings beside the answer, too.
    for form, times in (("table", 1), ("md", 1), ("html", 2)):
        ended = compared(tool, store, tmp_path, f"--format={form}")
        assert ended.code == 0
        text = re.sub(r"\s+|&#39;|\\", " ", ended.out)
        assert len(re.findall(r"No run of zzz was given", text)) == times


def test_machines_are_counted_whatever_the_columns_are(tool, store, tmp_path):
    two = compared(tool, store, tmp_path, "--by=precision").out
    # Of three machines of the table two have a run.
    assert "2" in two.splitlines()[0].split()
    (tmp_path / "machines.toml").write_text(
        "[machines.desk]\nprice = 1\n[machines.rack]\nprice = 1"
    )
    runs = ("results/20260101T030405Z-desk-0a1b", "results/20260101T030405Z-rack-0a1b")
    priced = tool("compare", *runs, "--machines=machines.toml", "--by=precision", "--format=md").out
    assert "2" in priced.splitlines()[0].split()


def test_what_is_fastest_is_not_said_as_if_it_were_what_to_buy(tool, store, tmp_path):
    text = compared(tool, store, tmp_path).out.replace("\n", " ")
    assert re.search(r"cheapest per item (\w+)", text)[1] == "desk"
    assert re.search(r"latency p50 alone.*?: (\w+) is fastest", text)[1] == "rack"
    assert "overall:" not in text


def test_in_a_tie_nobody_is_called_best(tool, store, tmp_path):
    runs = [store(of("desk", 1.0)), store(of("rack", 1.001))]
    page = tool("compare", *runs, "--format=md").out
    overview = page[page.index("| machine") : page.index("### ")]
    assert overview.count("| tie |") == 2
    assert "best" not in overview
    (tmp_path / "machines.toml").write_text(
        'currency = "EUR"\n[machines.desk]\nprice = 1000\n[machines.rack]\nprice = 1000\n'
    )
    bought = tool("compare", *runs, "--machines=machines.toml", "--format=md").out
    offers = [line for line in bought.splitlines() if re.match(r"\| (best|tie) \|", line)]
    assert [line.split(" | ")[0] for line in offers] == ["| tie", "| tie"]


@pytest.mark.parametrize("percentile", ["p90", "p95", "p99"])
def test_the_limit_is_of_the_percentile_that_is_asked_for(tool, store, tmp_path, percentile):
    ended = compared(tool, store, tmp_path, "--rate=5", f"--{percentile}=60ms")
    assert ended.code == 0
    assert f"{percentile} ≤ 60 ms" in ended.out


def test_limits_of_several_percentiles_are_a_wrong_call(tool, store, tmp_path):
    ended = compared(tool, store, tmp_path, "--rate=5", "--p95=60ms", "--p99=60ms")
    assert (ended.code, ended.out) == (2, "")
    assert {"--p95", "--p99"} <= set(re.findall(r"--p\d+", ended.error.message))


@pytest.mark.parametrize(
    "call",
    [
        ("compare", "--rate=inf", "--p99=50ms"),
        ("compare", "--rate=nan", "--p99=50ms"),
        ("compare", "--years=inf"),
        ("compare", "--years=nan"),
        ("gate", "--self-test", "--minutes=inf"),
        ("gate", "--self-test", "--minutes=nan"),
    ],
)
def test_a_number_that_is_not_finite_is_a_wrong_call(tool, store, tmp_path, call):
    command, *options = call
    if command == "compare":
        ended = compared(tool, store, tmp_path, *options)
    else:
        ended = tool(command, *options)
    assert ended.code == 2
    name, _, value = next(text for text in options if text.endswith(("inf", "nan"))).partition("=")
    assert isinstance(ended.raised, click.BadParameter)
    assert ended.raised.param is not None
    assert name in ended.raised.param.opts
    assert value in ended.raised.message
    assert ended.out == ""
