"""How tests are spread over processes: files at a time, and what is timed alone, at the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.tiers import TIMED, UNIT, tier_of

FOLDER = Path(__file__).resolve().parent


def processes() -> int:
    """Return how many processes run tests: one a CPU that this one may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(config: pytest.Config) -> None:
    """Run whole folders of tests in as many processes as there are CPUs.

    A run of single files, of ``-k``, or with ``--pdb`` or ``-s`` stays in this process, and ``-n``
    decides where it is given.
    """
    option = config.option
    if hasattr(config, "workerinput") or not config.pluginmanager.has_plugin("xdist"):
        return  # one of several already
    asked = option.numprocesses is not None or option.dist != "no" or option.tx
    single = option.keyword or option.usepdb or option.collectonly or option.capture == "no"
    if asked or single or not all(_is_folder(argument) for argument in config.args):
        return
    option.numprocesses = processes()
    option.dist = "loadgroup"
    option.loadscopereorder = False  # see arrange


def _is_folder(argument: str) -> bool:
    path = Path(argument).resolve()
    return path.is_dir() and path.is_relative_to(FOLDER)


def arrange(items: list[pytest.Item]) -> None:
    """Put files that take long first, so that short ones fill the end, and what is timed last."""

    def place(item: pytest.Item) -> int:
        return 2 if item.get_closest_marker(TIMED) else int(tier_of(item) == UNIT)

    items.sort(key=place)
    for item in items:
        if item.get_closest_marker(TIMED):
            item.add_marker(pytest.mark.xdist_group(TIMED))


class TimedLast(LoadScopeScheduling):
    """Gives whole files to processes, and to the last one alone what is timed."""

    def _split_scope(self, nodeid: str) -> str:
        return TIMED if nodeid.endswith(f"@{TIMED}") else nodeid.partition("::")[0]

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Note that a test ended, which may leave another process alone."""
        super().mark_test_complete(node, item_index, duration)
        self._wake()

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process. What it leaves, where it crashed, comes before what is timed."""
        crashed = super().remove_node(node)
        if TIMED in self.workqueue:
            self.workqueue.move_to_end(TIMED)
        self._wake()
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._only_timed_is_left() or self._is_alone(node):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if not node.shutting_down and self._only_timed_is_left() and self._company(node):
            node.shutdown()  # it finishes what it has
        else:
            super()._reschedule(node)

    def _only_timed_is_left(self) -> bool:
        return next(iter(self.workqueue), None) == TIMED

    def _company(self, node: WorkerController) -> list[WorkerController]:
        """Return the other processes that still take work."""
        return [other for other in self.nodes if other is not node and not other.shutting_down]

    def _is_alone(self, node: WorkerController) -> bool:
        """Whether no other process runs, or will run, a test."""
        pending = (
            self._pending_of(work)
            for other, work in self.assigned_work.items()
            if other is not node
        )
        return not self._company(node) and not any(pending)

    def _wake(self) -> None:
        """Give the last process what is timed, once it is alone."""
        if self._only_timed_is_left():
            for node in self.nodes:
                if self._is_alone(node):
                    self._reschedule(node)
