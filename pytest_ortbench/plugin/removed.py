"""Removed models and cases, each an item of pytest: the baseline has them, this run lost them.

They are items like any other, so that they fail by name in every report, and so that ``-k``,
``-m``, ``--deselect``, ``-x``, ``--lf`` and ``--collect-only`` treat them as any other test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.planning.matrix import Plan
from pytest_ortbench.plugin.own_tests import planned_of
from pytest_ortbench.plugin.taken import bench_of

if TYPE_CHECKING:
    from pytest_ortbench.gate.numbers.removals import Removal
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.gating import Gating

#: What the node ids of the items begin with.
_NAME = "ortbench"

#: Marks that would change what becomes of an item; others only select it.
_ACTING = frozenset({"parametrize", "skip", "skipif", "xfail", "usefixtures", "filterwarnings"})


class RemovedItem(pytest.Item):
    """Fails, as a test, what a run lost; passes what the project accepts.

    Args:
        removal: What is gone.
        gating: The gate of the run, which the verdicts go to.
    """

    def __init__(self, *, removal: Removal, gating: Gating, **rest: Any) -> None:
        super().__init__(**rest)
        self.removal = removal
        self._gating = gating

    def runtest(self) -> None:
        """Judge what is gone.

        Raises:
            pytest.fail.Exception: if nobody accepts it.
        """
        from pytest_ortbench.gate.numbers.acceptance import why_not
        from pytest_ortbench.gate.report.lines import gate_properties

        judged = self._gating.judge_removal(self.removal)
        self.user_properties += gate_properties(judged[0])
        if any(result.failures for result in judged):
            keys = [(result.case_id, result.runtime) for result in judged]
            bench_of(self.config).complaints.carries_gate(self, keys)
            told = [
                f"  {result.case_id}{result.role_note}: {why_not(finding)}"
                for result in judged
                for finding in result.findings
                if finding.acceptance is not None and not finding.is_accepted
            ]
            now = {result.moved_to for result in judged if result.moved_to}
            told += [f"  the same file is now {name}" for name in sorted(now)]
            lines = [self.removal.reason, *told, self.removal.mend]
            pytest.fail("\n".join(lines), pytrace=False)

    def reportinfo(self) -> tuple[str, int, str]:
        """Say where it stands: in no file. What is skipped by a mark needs a line all the same."""
        return _NAME, 0, self.name


class RemovedCases(pytest.Collector):
    """Holds the items of everything that is gone.

    Args:
        gone: What is gone.
        gating: The gate of the run.
        asking: The tests that asked for it: what selects one of them selects the items, too.
    """

    def __init__(
        self,
        *,
        gone: Sequence[Removal],
        gating: Gating,
        asking: Sequence[pytest.Item],
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self._gone = gone
        self._gating = gating
        self._asking = asking

    def collect(self) -> Iterator[RemovedItem]:
        """Make the items."""
        words = set(_words(self._asking))
        marks = {mark.name: mark for item in self._asking for mark in item.iter_markers()}
        for removal in self._gone:
            name = f"removed[{removal.name}]"
            item = RemovedItem.from_parent(
                self,
                name=name,
                # Written out, so that pytest reads the brackets as it does when it is told one.
                nodeid=f"{self.nodeid}::{name}",
                removal=removal,
                gating=self._gating,
            )
            item.extra_keyword_matches.update(words)
            item.own_markers += [mark for name, mark in marks.items() if name not in _ACTING]
            yield item


def _words(asking: Iterable[pytest.Item]) -> Iterator[str]:
    """Names that ``-k`` may select the tests by, without their cases."""
    for item in asking:
        yield str(getattr(item, "originalname", None) or item.name.partition("[")[0])
        yield from (node.name for node in item.listchain()[1:-1])


def removed_items(
    bench: Bench, gating: Gating | None, session: pytest.Session, collected: Iterable[pytest.Item]
) -> list[pytest.Item]:
    """Find what the gate compares with; return an item for everything that is gone.

    Args:
        bench: The run.
        gating: Its gate, if it has one.
        session: pytest's.
        collected: All tests, before any is deselected.

    Raises:
        OrtbenchError: if the gate has nothing to compare with, or models that were asked for are
            not there and were not there before either.
    """
    missing = bench.collection.without_models
    if gating is None:
        if missing:
            raise pytest.UsageError(*missing)
        return []
    for request in bench.collection.folder_requests():
        bench.note_plan(request, Plan(entries=()))
    try:
        gating.look()
    except OrtbenchError:
        if missing:
            raise pytest.UsageError(*missing) from None
        raise
    if missing and not gating.removals:
        raise pytest.UsageError(*missing)
    bench.collection.notes += missing
    if gating.removals and not _is_narrowed(bench.config):
        asking = [item for item in collected if planned_of(item) is not None]
        collector = RemovedCases.from_parent(
            session, name=_NAME, nodeid=_NAME, gone=gating.removals, gating=gating, asking=asking
        )
        items = session.genitems(collector)
        gating.items = {item: item.removal for item in items if isinstance(item, RemovedItem)}
    return list(gating.items)


def _is_narrowed(config: pytest.Config) -> bool:
    """Whether the command line names single cases of tests only: what is gone is none of them."""
    return bool(config.args) and all("[" in str(arg).partition("::")[2] for arg in config.args)
