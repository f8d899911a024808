"""An sshd of our own on the loopback: own keys, own configuration, own port."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_HOST = "127.0.0.1"
_START_S = 20.0


@dataclass(frozen=True)
class SshServer:
    """A running server.

    Attributes:
        command: ``ssh`` with all options and the host; what is to be run follows.
        port: Where it listens, on the loopback.
        key: The private key that it lets in.
        known_hosts: The file that knows its key.
    """

    command: tuple[str, ...]
    port: int
    key: Path
    known_hosts: Path


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Start a server that lets this user in with one key, and stop it."""
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True, timeout=600)
    if os.geteuid() == 0:
        # The service's own start makes it; a server that does not run as root needs none.
        Path("/run/sshd").mkdir(exist_ok=True)
    port = _free_port()
    public = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[{_HOST}]:{port} {public[0]} {public[1]}\n")
    (folder / "config").write_text(
        f"ListenAddress {_HOST}\nPort {port}\nHostKey {folder / 'host'}\n"
        f"AuthorizedKeysFile {folder / 'user.pub'}\nPidFile {folder / 'pid'}\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, "-D", "-e", "-f", str(folder / "config")],
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _wait_for(port, server, folder / "log")
        yield SshServer(
            command=(
                "ssh", "-F", "none", "-T", "-p", str(port), "-i", str(folder / "user"),
                "-o", f"UserKnownHostsFile={folder / 'known'}", "-o", "BatchMode=yes",
                "-l", getpass.getuser(), _HOST,
            ),
            port=port,
            key=folder / "user",
            known_hosts=folder / "known",
        )  # fmt: skip
    finally:
        server.terminate()
        server.wait(timeout=600)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection((_HOST, port), timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"sshd did not start: {log.read_text()}") from None
            time.sleep(0.05)
