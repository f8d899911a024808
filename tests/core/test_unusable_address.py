"""Whose fault it is that nobody can listen at an address: that of the host, or of its port."""

from __future__ import annotations

import errno
import socket

import pytest

from pytest_ortbench.core.unusable_address import unusable_address


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (OSError(errno.EADDRINUSE, "in use (while attempting to bind)"), "--http"),
        (PermissionError(errno.EACCES, "not allowed"), "--http"),
        (OSError("without a number"), "--http"),
        (OSError(errno.EADDRNOTAVAIL, "of another machine"), "--host"),
        (socket.gaierror(socket.EAI_NONAME, "not known"), "--host"),
        (UnicodeError("label empty or too long"), "--host"),
    ],
    ids=str,
)
def test_the_option_that_is_wrong_is_the_place(error: OSError | UnicodeError, place: str) -> None:
    found = unusable_address("a.invalid", 80, error, port_place="--http")
    assert found.place == place
    assert ("--host=0.0.0.0" in found.hint) is (place == "--host")
