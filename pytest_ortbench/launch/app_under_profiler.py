"""An ASGI application of the user's with one of Python's profilers around its requests.

It runs by its path, in the Python of the application, which need not have this package: standard
library only. Requests are counted as they come, one after the other; after some the profiler
begins, and after some more what it found is written to a file.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import runpy
import sys
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

#: What uvicorn is told to serve.
_NAME = "ortbench_profiled"


class ProfiledApp:
    """The application, whose requests are counted.

    Args:
        app: ``module:name``, as uvicorn takes it.
        profiler: What looks.
        found: File for what it found.
        warm_up: Requests before it begins.
        rounds: Requests that it looks at.
    """

    def __init__(self, app: str, profiler: Any, found: Path, *, warm_up: int, rounds: int) -> None:
        self._app, self._profiler, self._found = app, profiler, found
        self._first, self._last = warm_up + 1, warm_up + rounds
        self._requests = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Hand a request on."""
        is_counted = scope["type"] == "http" and scope["method"] == "POST"
        self._requests += is_counted
        number = self._requests
        own = self._own
        if is_counted and number == self._first:
            self._profiler.begin()
        await own(scope, receive, send)
        if is_counted and number == self._last:
            self._write()

    @cached_property
    def _own(self) -> Any:
        module, _, name = self._app.partition(":")
        return getattr(importlib.import_module(module), name)

    def _write(self) -> None:
        beside = self._found.with_suffix(".part")
        found = self._profiler.found()
        beside.write_text(json.dumps(found), encoding="utf-8")
        beside.replace(self._found)


def main() -> None:
    """Serve the application by uvicorn, whose own arguments come last."""
    profilers, name, found, warm_up, rounds, app, *rest = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("ortbench_profilers", profilers)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    module = ModuleType(_NAME)
    vars(module)["app"] = ProfiledApp(
        app, loaded.profiler_of(name), Path(found), warm_up=int(warm_up), rounds=int(rounds)
    )
    sys.modules[_NAME] = module
    sys.argv = ["uvicorn", f"{_NAME}:app", *rest]
    runpy.run_module("uvicorn", run_name="__main__")


if __name__ == "__main__":
    main()
