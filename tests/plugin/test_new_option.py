"""A throw-away option is written in two files, and everything that knows of options knows it."""

from __future__ import annotations

import pytest

from tests.product_copy import copy_product, told_beside

pytestmark = pytest.mark.live

#: What is added, by file and by the line that it goes in front of.
_ADDED = {
    "plugin/case_options.py": (
        "    dims: dict[str, tuple[int, ...]] = option(\n",
        """    beans: tuple[int, ...] = option(
        (),
        flag="--ort-beans",
        kind="list",
        metavar="N,N",
        help="beans in the coffee (default: as many as fit)",
        reader="pytest_ortbench.plugin.option_readers:read_whole_numbers",
        to="request.beans",
        keyword=Keyword(help="numbers of beans", takes="numbers"),
    )
""",
    ),
    "planning/request.py": (
        "    dims: dict[str, tuple[int, ...]] = field(default_factory=dict)\n",
        "    beans: tuple[int, ...] = ()\n",
    ),
}

_SCRIPT = """
import contextlib, io, json, sys

import pytest
from _pytest.config import _prepareconfig

from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.marker import read_marker
from pytest_ortbench.plugin.option_sources import read_options
from pytest_ortbench.plugin.options import ROWS

PLUGIN = ["-p", "pytest_ortbench.plugin"]

def printed(argument):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        assert pytest.main([*PLUGIN, argument]) == 0
    return text.getvalue()

def read(*arguments):
    return read_options(_prepareconfig([*PLUGIN, *arguments]))

from_ini, typed = read(), read("--ort-beans=3,4")
request = PlanRequest.of_options(typed, ROWS, models=())
marker = read_marker([pytest.mark.ortbench(beans=5).mark], place="test_it", folders=())
print(json.dumps({
    "help": printed("--help"),
    "markers": printed("--markers"),
    "ini": [from_ini.beans, from_ini.places["beans"]],
    "typed": [typed.beans, typed.given["beans"]],
    "request": request.beans,
    "marked": marker.apply(request).beans,
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a copy of the product with the option says of it."""
    folder = tmp_path_factory.mktemp("copy")
    copy_product(folder, {name: [addition] for name, addition in _ADDED.items()})
    (folder / "pytest.ini").write_text("[pytest]\nort_beans = 7\n", encoding="utf-8")
    return told_beside(folder, _SCRIPT)


def test_help_has_the_flag_and_the_ini_key(seen: dict[str, str]) -> None:
    assert "--ort-beans=N,N" in seen["help"]
    assert "ort_beans (args):" in seen["help"]


def test_the_marker_has_the_keyword(seen: dict[str, str]) -> None:
    assert "batch_sizes=…, beans=…, dims=…" in seen["markers"]


def test_the_command_line_and_the_ini_file_are_read(seen: dict[str, object]) -> None:
    assert seen["typed"] == [[3, 4], "3,4"]
    value, place = seen["ini"]
    assert value == [7]
    assert place.startswith("ort_beans in ")


def test_the_plan_and_the_marker_take_the_value(seen: dict[str, object]) -> None:
    assert seen["request"] == [3, 4]
    assert seen["marked"] == [5]
