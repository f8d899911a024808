"""The lines of a journal, each of which is on the disk before the next thing happens."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pytest_ortbench.core.whole_file import BINARY, MODE, make_folder, sync, sync_folder, write_all


class Journal:
    """A file of lines, each of which is on the disk when :meth:`write` returns.

    Whatever ends the process, whole lines stay whole: at most the line in flight is torn.

    Args:
        path: The file; it must not exist, and neither it nor its folder is made before the first
            line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []
        self._made = False

    @property
    def made(self) -> bool:
        """Whether the file exists."""
        return self._made

    @property
    def pending(self) -> bool:
        """Whether some lines could not be written so far."""
        return bool(self._pending)

    def write(self, *lines: bytes) -> None:
        """Append lines, after those that could not be written before.

        Args:
            lines: Each with its newline.

        Raises:
            OSError: if they can't be written; they are kept for the next attempt.
        """
        self._pending += lines
        self.flush()

    def flush(self) -> None:
        """Write the lines that could not be written before.

        Raises:
            OSError: if they can't be written now either.
        """
        if not self._pending:
            return
        make_folder(self.path.parent)
        exclusive = 0 if self._made else os.O_EXCL
        descriptor = os.open(
            self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | exclusive | BINARY, MODE
        )
        try:
            if not self._made:
                self._made = True
                sync_folder(self.path.parent)
            self._append(descriptor, b"".join(self._pending))
        finally:
            os.close(descriptor)
        self._pending.clear()

    def remove(self) -> None:
        """Remove the file, if that is possible; a left-over journal does no harm."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    @staticmethod
    def _append(descriptor: int, data: bytes) -> None:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size and not _ends_with_newline(descriptor, size):
            # An earlier attempt tore a line and could not take it back.
            data = b"\n" + data
        try:
            write_all(descriptor, data)
            sync(descriptor)
        except BaseException:  # also an interrupt must not leave half a line
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise


def _ends_with_newline(descriptor: int, size: int) -> bool:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) == b"\n"
