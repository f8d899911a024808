"""What tests take: the state of their run, their case, and the fixtures that give it.

Every start of pytest loads this module. What a run needs is imported when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import pytest

if TYPE_CHECKING:
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.fixture import OrtBench
    from pytest_ortbench.plugin.marker import Rejected

_BENCH = pytest.StashKey["Bench"]()
_TAKEN = pytest.StashKey["OrtBench"]()

_Result = TypeVar("_Result")
_Params = ParamSpec("_Params")


def bench_of(config: pytest.Config) -> Bench:
    """Return the state of a run, which the first call makes."""
    if _BENCH not in config.stash:
        from pytest_ortbench.plugin.bench import Bench

        config.stash[_BENCH] = made = Bench(config)
        config.pluginmanager.register(made.shield, "ortbench-interrupts")
        config.pluginmanager.register(made.outcomes, "ortbench-outcomes")
    return config.stash[_BENCH]


def existing_bench(config: pytest.Config) -> Bench | None:
    """Return the state of a run if a test of ours was collected, else ``None``."""
    return config.stash.get(_BENCH, None)


@pytest.fixture
def ortbench(request: pytest.FixtureRequest) -> OrtBench:
    """One case of the matrix of models × providers × precisions × shapes."""
    from pytest_ortbench.plugin.fixture import OrtBench
    from pytest_ortbench.plugin.marker import Rejected

    planned: Planned | Rejected | None = getattr(request, "param", None)
    if isinstance(planned, Rejected):
        pytest.fail(planned.message, pytrace=False)
    bench = bench_of(request.config)
    if planned is None and not bench.collection.makes_models(request.node):
        pytest.fail(
            f"{request.node.nodeid}: another fixture or request.getfixturevalue asks for the "
            "fixture 'ortbench', but only the test function itself gets a case to measure. Add "
            "'ortbench' to the arguments of the test function",
            pytrace=False,
        )
    entries = () if planned is None else (planned,)
    taken = OrtBench(bench, entries, bench.collection.limits_of(request.node), request.node)
    request.node.stash[_TAKEN] = taken
    return taken


def taken_by(item: pytest.Item) -> OrtBench | None:
    """Return the case that a running test has taken, by whatever name its fixture goes."""
    return item.stash.get(_TAKEN, None)


# -- without pytest-benchmark ----------------------------------------------------------------------


def offer_stand_in(config: pytest.Config) -> None:
    """Offer the fixture of pytest-benchmark where nobody else does: a shipped suite takes it."""
    plugins = config.pluginmanager
    if not any(map(_offers_benchmark, plugins.get_plugins())):
        plugins.register(_StandIn(), "ortbench-benchmark-stand-in")


def _offers_benchmark(plugin: object) -> bool:
    """Whether a plugin has the fixture, under the name of its function or another one."""
    kind = type(_StandIn.benchmark)
    held = vars(plugin).values() if hasattr(plugin, "__dict__") else ()
    named = (value.name for value in held if isinstance(value, kind))
    return hasattr(plugin, "benchmark") or "benchmark" in named


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
