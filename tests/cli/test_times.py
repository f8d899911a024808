"""Options of the console tool that are times, and runs that are named twice."""

from __future__ import annotations

import pytest

from tests.results_factory import make_result, make_run

TABLE = """
currency = "EUR"
[machines.bench]
price = 1000
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("50", "'50' has no unit. Write 50ms or 50s"),
        ("abc", "'abc' is not a time. Write e.g. 50ms"),
        ("-3ms", "'-3ms' is not a time above 0. Write e.g. 50ms"),
    ],
)
@pytest.mark.parametrize("command", ["compare --p99", "plot --p99", "plot --slo"])
def test_a_time_without_a_unit_is_refused(tool, store, tmp_path, command, text, words):
    (tmp_path / "machines.toml").write_text(TABLE)
    path = store(make_run([make_result()]))
    name, flag = command.split()
    more = ["--machines=machines.toml", "--rate=5"] if name == "compare" else []
    ended = tool(name, path, f"{flag}={text}", *more)
    assert ended.code == 2
    assert f"{flag}: {words}" in ended.err
    assert ended.err.count("\n") == 1


def test_p99_in_the_table_of_machines_names_its_unit(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text('rate = 5\np99 = "50"\n' + TABLE)
    ended = tool("compare", store(make_run([make_result()])), "--machines=machines.toml")
    assert (ended.code, ended.error.place) == (2, "machines.toml, p99")
    assert ("'50'" in ended.error.message, "50ms" in ended.error.hint) == (True, True)


def test_a_run_is_not_compared_with_itself(tool, store):
    path = store(make_run([make_result()]))
    for names in ([path, path], [path, "latest"], [f"a={path}", f"b={path}"], [path] * 3):
        ended = tool("compare", *names)
        assert ended.code == 2
        assert f"the {len(names)} arguments name the same run" in ended.err
        assert f"ortbench compare {names[0]} --by=" in ended.err
