"""A callable of the user's: it takes arrays by the names of the inputs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference
from pytest_ortbench.worker.entry import load_source


class PythonCallable(Engine):
    """What the entry function returned, called with all inputs."""

    def load(self) -> str:
        """Return the version of Python: there is no library."""
        return platform.python_version()

    def open(self) -> Inference:
        """Have the entry function make the callable, and return what calls it."""
        if self.task.source is None:
            raise EngineRefusal("there is no callable")
        function = load_source(self.task.source).model
        names = [item.name for item in self.task.outputs]

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            given = function(feeds)
            if isinstance(given, Mapping):
                return [given[name] for name in names]
            return given if isinstance(given, tuple | list) else (given,)

        return infer

    def close(self) -> None:
        """Nothing is held beside the callable."""
