"""One shard of a suite that several machines measure; loaded in the pytest of a shard alone.

``ORTBENCH_SHARD`` names a file of JSON. With ``"plan"`` the models of the suite are written to the
file that it names, and how many cases each has; with ``"models"`` the tests of these are run. With
``"pipe"`` the run ends when whoever started it does.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.plugin.own_tests import is_ours, planned_of

#: The variable that names the file.
PLACE = "ORTBENCH_SHARD"
#: Seconds that a run has to end by itself.
_END_S = 20.0


def model_in_shard(item: pytest.Item) -> str:
    """Return what the tests of one shard have in common: the model, else the test that makes it."""
    planned = planned_of(item)
    if planned is not None:
        return planned.case.model.name
    return item.nodeid if is_ours(item) else ""


def cases_by_model(items: Iterable[pytest.Item]) -> dict[str, int]:
    """Return how many cases each model has, in the order of the tests; one of a test that makes
    its model."""
    cases: dict[str, dict[object, None]] = {}
    for item in items:
        planned, model = planned_of(item), model_in_shard(item)
        if model:
            key = item.nodeid if planned is None else planned.case.key
            cases.setdefault(model, {})[key] = None
    return {model: len(keys) for model, keys in cases.items()}


class ShardOfTests:
    """Leaves the tests of other models out, or writes which models there are."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._models = order.get("models")
        self._plan = order.get("plan")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect what is of no model of this shard."""
        if self._models is None:
            return
        others = [item for item in items if model_in_shard(item) not in self._models]
        items[:] = [item for item in items if model_in_shard(item) in self._models]
        config.hook.pytest_deselected(items=others)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the plan, once all selection is over."""
        if self._plan is None:
            return
        answer = {"models": cases_by_model(session.items)}
        Path(self._plan).write_text(json.dumps(answer), encoding="utf-8")


def _end_with(pipe: int) -> None:
    """End this run when the other end of a pipe is closed."""
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_END_S)
    os.killpg(0, signal.SIGKILL)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Read what is asked for."""
    place = os.environ.pop(PLACE, "")
    if not place:
        return
    order = json.loads(Path(place).read_text(encoding="utf-8"))
    if "pipe" in order:
        os.set_inheritable(order["pipe"], False)
        threading.Thread(target=_end_with, args=(order["pipe"],), daemon=True).start()
    session.config.pluginmanager.register(ShardOfTests(order), "ortbench-shard")
