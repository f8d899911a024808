"""Options of a provider, confirmed by what a session reads back or by refusing unknown ones."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker import provider_options
from pytest_ortbench.worker.provider_options import OptionEvidence


class Session:
    """Reads back what it is told to."""

    def __init__(self, read: dict[str, str]) -> None:
        self.read = read


@pytest.fixture(autouse=True)
def _sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        provider_options,
        "options_in_force",
        lambda session, name: session.read,  # noqa: ARG005
    )
    monkeypatch.setattr(provider_options, "session_options", lambda *_, **__: None)


def acme(**options: str) -> Provider:
    return Provider(alias="acme", name="AcmeExecutionProvider", options=options)


def opening(
    monkeypatch: pytest.MonkeyPatch, *, known: set[str] | None, read: dict[str, str] | None = None
) -> list[dict[str, str]]:
    """Sessions that refuse any other option than the known ones (``None``: that take any)."""
    opened: list[dict[str, str]] = []

    def create(model: bytes, provider: Provider, settings: object) -> tuple[Any, int]:
        opened.append(provider.options)
        if known is not None and provider.options.keys() - known:
            raise RuntimeError("unknown option")
        return Session({} if read is None else read), 1

    monkeypatch.setattr(provider_options, "create", create)
    return opened


def seen(provider: Provider, read: dict[str, str]) -> OptionEvidence:
    """What is known after the trial and a session that reads this back."""
    evidence = OptionEvidence(provider)
    evidence.try_out(threads=1)
    session: Any = Session(read)
    in_force = evidence.in_force(session)
    assert not {f"acme.{key}" for key in in_force} & evidence.unconfirmed.keys()
    return evidence


def test_who_refuses_an_option_that_nobody_has_knows_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = opening(monkeypatch, known={"speed", "device_id"})
    assert seen(acme(speed="2", device_id="1"), {}).unconfirmed == {}
    assert opened[0] == {"device_id": "1"}


@pytest.mark.parametrize("read", [{}, {"speed": "2", "device_id": "1"}])
def test_who_takes_any_option_confirms_none(
    read: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opening(monkeypatch, known=None)
    assert list(seen(acme(speed="2", device_id="1"), read).unconfirmed) == ["acme.speed"]


def test_who_can_t_be_opened_at_all_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opening(monkeypatch, known=set())
    assert list(seen(acme(speed="2", device_id="1"), {}).unconfirmed) == ["acme.speed"]


@pytest.mark.parametrize(
    ("given", "read", "confirmed"),
    [
        ("1", "1", True),
        ("true", "1", True),
        ("False", "0", True),
        ("EXHAUSTIVE", "exhaustive", True),
        ("2", "1", False),
        ("banana", "0", False),
    ],
)
def test_what_is_read_back_must_be_what_was_given(
    given: str, read: str, confirmed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opening(monkeypatch, known=None, read={"another": "0"})
    found = seen(acme(speed=given), {"speed": read, "another": "0"})
    assert (found.unconfirmed == {}) is confirmed
    # Whose sessions read back more than they were given needs no further trial.
    assert len(opened) == 1


def test_a_device_alone_needs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = opening(monkeypatch, known=None)
    assert seen(acme(device_type="GPU"), {}).unconfirmed == {}
    assert opened == []
