"""pytest-xdist: our tests run in its controller, one after the other, once all workers have ended.

Cases that are measured at the same time disturb each other, and so do tests that run beside them.
Workers leave our tests out and tell in which files they lie.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ortbench.plugin.own_tests import is_ours

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEY = "ortbench"
_LEFT = pytest.StashKey[dict[str, None]]()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of several that run tests."""
    return hasattr(config, "workerinput")


def leave_out(config: Any, items: list[pytest.Item]) -> None:
    """Take our tests from those of a worker, and tell the controller of them."""
    config.workeroutput[_KEY] = sorted({str(item.path) for item in items if is_ours(item)})
    items[:] = [item for item in items if not is_ours(item)]


def note_files(config: pytest.Config, files: Iterable[str]) -> None:
    """Note the files in which a worker left tests out."""
    config.stash.setdefault(_LEFT, {}).update(dict.fromkeys(files))


def follows_workers(config: pytest.Config) -> bool:
    """Whether workers ran the other tests, so that here are those that they left out."""
    return _LEFT in config.stash


def keep_ours(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take from the tests that the controller collects those that workers ran."""
    if follows_workers(config):
        items[:] = [item for item in items if is_ours(item)]


def run_left_out(session: pytest.Session) -> None:
    """Run the tests that workers left out; the processes of the workers are gone then."""
    config = session.config
    files = config.stash.get(_LEFT, {})
    if not files:
        return
    controller: Any = config.pluginmanager.get_plugin("dsession")
    controller.nodemanager.teardown_nodes()
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and config.get_terminal_writer().width_of_current_line:
        reporter.write("\n")  # the dots of workers are of no file, after which pytest ends one
    others = session.testscollected
    named = any("::" in str(argument) for argument in config.args)
    session.perform_collect(None if named else list(files))
    session.testscollected += others
    is_skipping = config.getoption("benchmark_skip", False)
    if reporter is not None and session.items and not is_skipping:
        reporter.write_line("ortbench: pytest-xdist's workers have ended; tests of models run now")
    for item, following in zip_longest(session.items, session.items[1:]):
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
