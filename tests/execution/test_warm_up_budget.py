"""How long a worker may warm up."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)

from __future__ import annotations

import pytest

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from tests.results_factory import make_case

from .fakes import FakeLauncher, FakeWorker


@pytest.mark.parametrize(
    ("provider", "sampling", "seconds"),
    [
        ("cpu", Sampling(time_s=6.0, workers=3), 4.0),
        ("cpu", Sampling(time_s=6.0, workers=1), 12.0),
        ("cpu", Sampling(time_s=0.3, workers=3), 0.25),
        ("cuda", Sampling(time_s=0.3, workers=3), 1.0),
        ("tensorrt", Sampling(time_s=1.5, workers=3), 2.0),
        ("cpu", Sampling(time_s=60.0, workers=1, timeout_s=20.0), 5.0),
    ],
)
def test_twice_the_timed_share_between_the_providers_least_and_the_timeout(
    provider: str, sampling: Sampling, seconds: float
) -> None:
    case = make_case(provider=provider, sampling=sampling)
    assert warm_up_budget_s(case) == pytest.approx(seconds)


def test_the_standard_pass_keeps_to_it(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = []
    warm = FakeWorker.warm

    def noted(self, question):
        budgets.append(question.budget_s)
        return warm(self, question)

    monkeypatch.setattr(FakeWorker, "warm", noted)
    case = make_case(sampling=Sampling(time_s=0.6, workers=2))
    result = measure(case, FakeLauncher(lambda case, index: 1e6), tmp_path)
    assert result.status == "measured"
    assert budgets == pytest.approx([0.6, 0.6])
