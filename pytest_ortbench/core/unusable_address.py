"""Why nobody can listen at an address of this machine, and what to write instead."""

from __future__ import annotations

import errno
import os
import socket

from pytest_ortbench.core.errors import UsageError, says


def unusable_address(
    host: str, port: int, error: OSError | UnicodeError, *, port_place: str = "--port"
) -> UsageError:
    """Return the message for an address that can't be listened at.

    Args:
        host: As written.
        port: As written.
        error: What listening raised; a name that has no form in DNS is a :class:`UnicodeError`.
        port_place: The option that names the port.
    """
    if isinstance(error, UnicodeError):
        return _of_host(host, "this can't be the name of a machine")
    # Python adds the address to what the system says; numbers of names are below 0.
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return _of_host(host, "no address of this name is known")
    if error.errno == errno.EADDRNOTAVAIL:
        return _of_host(host, "no network interface of this machine has this address")
    if error.errno == errno.EAFNOSUPPORT:
        return _of_host(host, why)
    above = " above 1023" if error.errno == errno.EACCES and port < 1024 else ""
    what = f"the port {port} of {host}"
    return UsageError(
        f"{what} is already in use"
        if error.errno == errno.EADDRINUSE
        else f"{what} can't be used. {says('The system', why)}",
        place=port_place,
        hint=f"Choose another port{above}. For any free one, write {port_place}=0",
    )


def _of_host(host: str, why: str) -> UsageError:
    return UsageError(
        f"this machine can't listen at {host!r}: {why}",
        place="--host",
        hint="To be reached from other machines, write --host=0.0.0.0. To be reached from this "
        "machine only, write --host=127.0.0.1",
    )
