"""The plugins of the matrix, and the small project in which each is tried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: A test of the ordinary kinds: function, class, parameters, fixture, subtest of unittest.
_ORDINARY = """
import unittest
import pytest

@pytest.fixture
def number():
    return 3

def test_plain(number):
    assert number == 3

@pytest.mark.parametrize("value", [1, 2])
def test_each(value):
    assert value < 3

class TestOfClass:
    def test_method(self, tmp_path):
        assert tmp_path.is_dir()

class OfUnittest(unittest.TestCase):
    def test_case(self):
        self.assertTrue(True)

def test_is_skipped():
    pytest.skip("on purpose")
"""

#: Our items: a function with the marker, with a limit that always holds.
_OURS = """
import pytest

@pytest.mark.ortbench(models=["models/net.onnx"], limits=["latency_p50 <= 10 s"])
def test_of_model(ortbench):
    assert ortbench.latency().p50 > 0
"""


@dataclass(frozen=True)
class Plugin:
    """One plugin of others.

    Attributes:
        name: Its distribution.
        test: A test file that uses what the plugin is for; empty: the ordinary tests do.
        options: Its options on the command line.
        needs: Further distributions.
        ini: Lines of the ini section.
    """

    name: str
    test: str = ""
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ini: str = ""


#: The most downloaded of the package index in October 2026. Left out: pytest-runner, a command of
#: setuptools that pytest does not load.
PLUGINS = (
    Plugin("pytest-cov", options=("--cov=.", "--cov-report=xml")),
    Plugin(
        "pytest-asyncio",
        test="""
import asyncio
import pytest

@pytest.mark.asyncio
async def test_waits():
    await asyncio.sleep(0)
""",
        options=("--asyncio-mode=auto",),
    ),
    Plugin("pytest-json-ctrf", options=("--ctrf=ctrf.json",)),
    Plugin("pytest-xdist", options=("-n", "2")),
    Plugin(
        "pytest-mock",
        test="""
import os

def test_mocks(mocker):
    mocker.patch("os.getcwd", return_value="elsewhere")
    assert os.getcwd() == "elsewhere"
""",
    ),
    Plugin("pytest-timeout", options=("--timeout=120",)),
    Plugin(
        "pytest-rerunfailures",
        test="""
import pathlib

def test_fails_once():
    mark = pathlib.Path("ran-once")
    if not mark.exists():
        mark.touch()
        raise AssertionError
""",
        options=("--reruns=2",),
    ),
    Plugin("pytest-metadata", options=("--metadata", "build", "17")),
    Plugin("pytest-html", options=("--html=report.html", "--self-contained-html")),
    Plugin(
        "pytest-env",
        test="""
import os

def test_reads():
    assert os.environ["OF_PROJECT"] == "here"
""",
        ini='env = ["OF_PROJECT=here"]',
    ),
    Plugin(
        "pytest-django",
        test="""
import django.conf
import pytest

if not django.conf.settings.configured:
    django.conf.settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    )

def test_settings(settings):
    settings.DEBUG = True
    assert django.conf.settings.DEBUG
""",
        needs=("django",),
    ),
    Plugin("pytest-split", options=("--splits=1", "--group=1")),
    Plugin(
        "pytest-benchmark",
        test="""
def test_counts(benchmark):
    assert benchmark(sum, [1, 2]) == 3
""",
        options=("--benchmark-json=bench.json",),
    ),
    Plugin("pytest-json-report", options=("--json-report",)),
    Plugin("pytest-repeat", options=("--count=2",)),
)
#: Further ones that reach far into a run: its order, its reports, its sockets.
FURTHER = (
    Plugin("allure-pytest", options=("--alluredir=allure",)),
    Plugin("pytest-randomly", options=("-p", "randomly")),
    Plugin("pytest-random-order", options=("--random-order",)),
    Plugin("pytest-sugar"),
    Plugin("pytest-instafail", options=("--instafail",)),
    Plugin("pytest-socket", options=("--disable-socket",)),
    Plugin("pytest-testmon", options=("--testmon",)),
)


def write_project(folder: Path, plugins: tuple[Plugin, ...], model: bytes) -> None:
    """Write the project that uses some plugins.

    Args:
        folder: An empty folder.
        plugins: The plugins.
        model: An ONNX file.
    """
    (folder / "tests").mkdir(parents=True)
    (folder / "models").mkdir()
    (folder / "models" / "net.onnx").write_bytes(model)
    (folder / "tests" / "test_ordinary.py").write_text(_ORDINARY)
    (folder / "tests" / "test_models.py").write_text(_OURS)
    ini = [plugin.ini for plugin in plugins if plugin.ini]
    (folder / "pyproject.toml").write_text(
        "\n".join(["[tool.pytest.ini_options]", 'testpaths = ["tests"]', *ini]) + "\n"
    )
    for plugin in plugins:
        if plugin.test:
            name = plugin.name.removeprefix("pytest-").replace("-", "_")
            (folder / "tests" / f"test_with_{name}.py").write_text(plugin.test)
