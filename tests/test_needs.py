"""The marker ``needs``: a skip with the install command, or a failure where all must be there."""

from __future__ import annotations

import pytest

import tests.conftest as settings


class Item:
    """A test that carries the marker."""

    def __init__(self, name: str) -> None:
        self.mark = pytest.mark.needs(name).mark

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [self.mark] if name == "needs" else []


def setup(name: str) -> None:
    settings.pytest_runtest_setup(Item(name))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def two_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    there = settings.Need(lambda: True, "nothing")
    missing = settings.Need(lambda: False, "apt-get install gone")
    monkeypatch.setattr(settings, "NEEDS", {"there": there, "gone": missing})
    monkeypatch.delenv(settings.REQUIRE_ALL, raising=False)


def test_what_is_there_runs() -> None:
    setup("there")


def test_what_is_missing_is_skipped_with_the_install_command() -> None:
    with pytest.raises(pytest.skip.Exception, match="needs gone: apt-get install gone"):
        setup("gone")


def test_where_all_must_be_there_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.REQUIRE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install gone"):
        setup("gone")


def test_unknown_need_is_a_mistake() -> None:
    with pytest.raises(pytest.fail.Exception, match="known are there, gone"):
        setup("gnoe")
