from __future__ import annotations

import json

import pytest

from tests.results_factory import make_result, make_run


@pytest.mark.parametrize("name", ["x.png", "x.SVGZ", "x", "x.json.txt"])
def test_a_badge_is_not_written_under_a_name_that_promises_something_else(
    tool, store, tmp_path, name
):
    ended = tool("badge", store(make_run([make_result()])), "mobilenet_v2", f"--output={name}")
    assert ended.code == 2
    assert ended.error.place.startswith("--output")
    assert (".svg" in ended.error.hint, ".json" in ended.error.hint) == (True, True)
    assert "--format" not in ended.error.hint
    assert ended.err.count("\n") == 1
    assert "{" not in ended.error.message
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("arguments", "name", "start"),
    [
        ([], "x.svg", "<svg "),
        ([], "x.SVG", "<svg "),
        ([], "x.json", '{"schemaVersion"'),
        (["--format=svg"], "x", "<svg "),
        (["--format=json"], "x.txt", '{"schemaVersion"'),
    ],
)
def test_the_ending_or_the_format_says_what_it_is(tool, store, tmp_path, arguments, name, start):
    path = store(make_run([make_result()]))
    assert tool("badge", path, "mobilenet_v2", f"--output={name}", *arguments).code == 0
    assert (tmp_path / name).read_text().startswith(start)


def test_the_terminal_gets_json(tool, store):
    ended = tool("badge", store(make_run([make_result()])), "mobilenet_v2")
    assert json.loads(ended.out)["label"] == "mobilenet_v2"
