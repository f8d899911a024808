"""The framework ``python`` calls a function of the user's with arrays by the names of inputs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.seam import Engine, Inference
from pytest_ortbench.worker.entry import load_source


class PythonCallable(Engine):
    """What the entry function returned, called with all inputs."""

    _function: Any = None  # whatever the user returned

    def load(self) -> str:
        """Return the version of Python: there is no library."""
        return platform.python_version()

    def build(self) -> None:
        """Have the entry function make the callable."""
        self._function = load_source(self.task.required_source()).model

    def open(self) -> Inference:
        """Return what calls the callable; sessions share it."""
        function = self._function
        names = [item.name for item in self.task.outputs]

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            given = function(feeds)
            if isinstance(given, Mapping):
                return [given[name] for name in names]
            return given if isinstance(given, tuple | list) else (given,)

        return infer

    def close(self) -> None:
        """Let go of the callable."""
        self._function = None
