"""The ``benchmark`` fixture of a run without pytest-benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

_Result = TypeVar("_Result")
_Params = ParamSpec("_Params")


def register(config: pytest.Config) -> None:
    """Offer the fixture where nobody else does: the shipped latency suite takes it statically."""
    plugins = config.pluginmanager
    if not any(hasattr(plugin, "benchmark") for plugin in plugins.get_plugins()):
        plugins.register(_StandIn(), "ortbench-benchmark-stand-in")


class _StandIn:
    """Holds the fixture."""

    @pytest.fixture
    def benchmark(self, request: pytest.FixtureRequest) -> AbsentBenchmark:
        """Stand in for pytest-benchmark's fixture in tests that take ``ortbench`` too."""
        if "ortbench" not in request.fixturenames:
            pytest.fail(
                "fixture 'benchmark' comes with pytest-benchmark, which is not installed or is "
                "switched off (-p no:benchmark). Install it: pip install pytest-benchmark",
                pytrace=False,
            )
        return AbsentBenchmark()


class AbsentBenchmark:
    """Behaves as pytest-benchmark's fixture with ``--benchmark-disable``: it times nothing."""

    enabled = False
    stats = None

    def __init__(self) -> None:
        self.extra_info: dict[str, object] = {}
        self.group: str | None = None

    def __call__(
        self,
        function: Callable[_Params, _Result],
        *args: _Params.args,
        **kwargs: _Params.kwargs,
    ) -> _Result:
        return function(*args, **kwargs)
