"""The console tool ``ortbench``: one module a command, each imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the console tool and exit: 0 fine, 1 a limit failed, 2 wrong call, 3 nothing to show.

    Args:
        arguments: What stands behind ``ortbench``; ``None`` takes it from the command line.
    """
    # Here and not above: importing the package must not load click.
    from pytest_ortbench.cli.application import run

    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))
