"""What tests read of the loads of a case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.passes.load.declaration import PASS
from pytest_ortbench.passes.load.facts import Load
from pytest_ortbench.passes.load.numbers.loads import add_one_load, main_reason
from pytest_ortbench.passes.load.numbers.spec import fitting_loads, parse_load, why_unfit
from pytest_ortbench.passes.load.planning.metrics_file import resolved_load
from pytest_ortbench.plugin.measured import fail, shown_numbers
from pytest_ortbench.report.escape import one_line

if TYPE_CHECKING:
    from pytest_ortbench.core.quantity import Quantity
    from pytest_ortbench.plugin.measured import Measured


#: What a load has beside its verdict, without ``load_``.
_NUMBERS = frozenset(name.removeprefix("load_") for name in PASS.metric_names) - {"valid"}


class LoadView:
    """One load of a case: the verdict of MLPerf's generator, and its numbers if it is VALID.

    ``rate`` (requests answered a second), ``p50``, ``p90`` and ``p99`` (from the scheduled arrival)
    and ``peak`` are quantities, and where tokens are bounded ``token_rate`` (written a second),
    ``ttft_p50``, ``tpot_p50`` and their other percentiles; reading one that was not measured fails
    the test and says why.
    """

    def __init__(self, ortbench: Measured, facts: Load) -> None:
        self._ortbench = ortbench
        self.facts = facts

    @property
    def text(self) -> str:
        """The load as written, which names it: ``server:100:20ms``."""
        return self.facts.spec.text

    @property
    def valid(self) -> bool:
        """Whether it is VALID; fails the test if there was it was not tested."""
        if self.facts.valid is None:
            self._fail("valid", self.facts.reason)
        return bool(self.facts.valid)

    @property
    def reason(self) -> str:
        """What decided against it, one reason; empty if it is VALID."""
        return one_line(main_reason(self.facts))

    @property
    def reasons(self) -> str:
        """Rules that failed and advice, in the generator's own words."""
        tests = self.facts.tests
        return one_line(self.facts.reason or "; ".join(tests[-1].reasons if tests else ()))

    def __getattr__(self, name: str) -> Quantity:
        if name not in _NUMBERS:
            raise AttributeError(f"no metric {name!r} here; known: {', '.join(sorted(_NUMBERS))}")
        collector = Collector()
        add_one_load(collector, self.facts)
        quantity = collector.quantities.get(f"load_{name}")
        if quantity is None:
            self._fail(name, collector.missing.get(f"load_{name}", "not measured"))
        return quantity

    def __repr__(self) -> str:
        """Return the load, its verdict and every number of it."""
        collector = Collector()
        add_one_load(collector, self.facts)
        verdicts = {None: "it was not tested", True: "VALID", False: "INVALID"}
        about = f"{self._ortbench.name}: {self.text}: {verdicts[self.facts.valid]}"
        about += f" ({self.reason})" if self.reason else ""
        numbers = {name: collector.quantities.get(f"load_{name}") for name in sorted(_NUMBERS)}
        return shown_numbers(about, numbers)

    def _fail(self, name: str, reason: str) -> NoReturn:
        fail(self._ortbench.name, [f"load_{name} was not measured: {reason}"])
        raise AssertionError  # failing raised already


def load(ortbench: Measured, scenario: str = "") -> LoadView:
    """One load under MLPerf's generator, in a pass of its own of at least 10 s.

    Args:
        scenario: As behind ``--ort-load``: ``server:100:20ms``, ``from:FILE``. Without one the
            first of ``--ort-load`` counts; where that is not given, the test is skipped.
    """
    asked = ortbench.options.load
    text = scenario.strip() or next(iter(asked), "")
    if not text:
        pytest.skip("no load was requested: use --ort-load=server:RATE:LATENCY")
    if text not in asked:
        try:
            text = resolved_load(text, base=Path.cwd(), place="ortbench.load")
        except UsageError as error:
            pytest.fail(str(error), pytrace=False)
    case = ortbench.case
    if text in asked and text not in fitting_loads(case):
        pytest.skip(why_unfit(parse_load(text, place="load"), case))
    ortbench.need(PASS.name if text in asked else f"{PASS.name}:{text}")
    facts = next(facts for facts in ortbench.result.loads if facts.spec.text == text)
    return LoadView(ortbench, facts)


def loads(ortbench: Measured) -> tuple[LoadView, ...]:
    """Every load of ``--ort-load`` that fits the case, in that order.

    Without one the test is skipped.
    """
    texts = fitting_loads(ortbench.case) or ortbench.options.load or ("",)
    return tuple(load(ortbench, text) for text in texts)
