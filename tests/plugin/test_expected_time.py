"""How long a run will take is told, and one of more than a day is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.plugin.expected_time import (
    expected_s,
    refuse_endless,
    time_words,
    to_measure,
)
from tests.refused import refused
from tests.results_factory import make_case, make_failure


def _cases(count: int, **sampling: Any) -> list[Case]:
    case = replace(make_case(), sampling=Sampling(**{"time_s": 5.0, "workers": 3, **sampling}))
    return [replace(case, inputs=()) for _ in range(count)]


def _bench(cases: list[Case], *, taken: int = 0, broken: int = 0) -> Any:
    planned = {
        number: Planned(case=case, refusal=make_failure() if number < broken else None)
        for number, case in enumerate(cases)
    }
    results = dict.fromkeys(range(broken, broken + taken))
    return SimpleNamespace(planned=planned, resumable=SimpleNamespace(results=results))


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (_cases(3), ""),
        (_cases(100), "about 13 min"),
        (_cases(3000), "about 7 h"),
        (_cases(2, soak_s=3600.0), "about 2 h"),
    ],
)
def test_a_long_run_says_how_long(cases: list[Case], words: str) -> None:
    assert time_words(cases) == words


def test_what_is_refused_or_taken_over_takes_no_time() -> None:
    bench = _bench(_cases(30), taken=10, broken=5)
    assert len(to_measure(bench)) == 15
    assert expected_s(to_measure(bench)) == 15 * 8.0


def test_a_run_of_more_than_a_day_is_refused() -> None:
    cases = _cases(11_000)
    with refused(UsageError, "11000 cases", "24 h", hint="--ort-resume"):
        refuse_endless(_bench(cases))
    refuse_endless(_bench(cases, taken=2000))
