"""Which cases take turns with a yardstick, and with which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Provider, Runtime, Sampling
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.yardstick import ABSENCES
from pytest_ortbench.schema.case_questions import Opened
from pytest_ortbench.yardstick import choice
from pytest_ortbench.yardstick.choice import (
    absence_of,
    chosen_yardstick,
    expected_absence,
    yardstick_threads,
)
from tests.results_factory import make_case, make_measurement


def _provider(alias: str, name: str, **more: Any) -> Case:
    return replace(make_case(), provider=Provider(alias=alias, name=name, **more))


@pytest.mark.parametrize(
    ("case", "absence"),
    [
        (make_case(), ""),
        (make_case(sampling=Sampling(yardstick="off")), "off"),
        (make_case(sampling=Sampling(yardstick="memory")), ""),
        (make_case(sampling=Sampling(time_s=0.9, workers=2)), "short"),
        (make_case(sampling=Sampling(time_s=1.0, workers=2)), ""),
        (make_case(provider="cuda"), "device"),
        (make_case(provider="xnnpack"), ""),
        (make_case(provider="openvino:GPU"), "device"),
        (make_case(provider="openvino:CPU"), ""),
        (make_case(provider="openvino"), "device"),
        (_provider("tract", "tract", role="engine"), ""),
        (_provider("torch", "PyTorch", role="framework", device="cuda"), "device"),
        (replace(make_case(), concurrency=2), "callers"),
        (replace(make_case(), sessions=2), "callers"),
        (replace(make_case(), runtime=Runtime(label="pi", shares_files=False)), "remote"),
        (replace(make_case(), runtime=Runtime(label="pi", through_shell=True)), "remote"),
        (
            replace(
                make_case(), generation=Generation(engine="session", prompt_tokens=1, new_tokens=1)
            ),
            "requests",
        ),
    ],
)
def test_why_a_case_has_none(case: Case, absence: str) -> None:
    assert expected_absence(case) == absence
    assert absence in ("", *ABSENCES)


def opened(**info: Any) -> Opened:
    """Return an opened model whose runtime says this of itself."""
    recorded = make_measurement()
    return Opened(
        info=replace(recorded.runtime, **info),
        startup=recorded.startup,
        threads=1,
        threads_source="affinity",
        cpus=2,
        options_in_force={},
        clock_pair_ns=100,
    )


def test_a_model_in_a_container_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "bench-1")
    absences = [absence_of(make_case(), opened(host=host)) for host in ("bench-1", "", "3f2a91")]
    assert absences == ["", "", "remote"]


@pytest.mark.parametrize(
    ("seen", "absence"), [((), "device"), (("cpu",), ""), (("cpu", "gpu"), "device")]
)
def test_a_provider_without_a_device_has_one_where_its_runtime_saw_cpus_alone(
    seen: tuple[str, ...], absence: str
) -> None:
    case = make_case(provider="openvino")
    assert absence_of(case, opened(provider_devices={case.provider.name: seen})) == absence


def test_where_processes_can_not_be_suspended_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "can_stop_processes", lambda: False)
    assert expected_absence(make_case()) == "suspension"


@pytest.mark.parametrize(
    ("threads", "cpus_used", "name"),
    [
        (1, 1.0, "mixed"),
        (1, 1.9, "mixed"),
        (1, None, "mixed"),
        (2, 1.02, "mixed"),
        (2, 1.45, "mixed"),
        (2, 1.55, "parallel"),
        (8, 1.3, "mixed"),
        (8, 7.1, "parallel"),
        (8, None, "parallel"),
    ],
)
def test_by_itself_it_is_like_the_model(threads: int, cpus_used: float | None, name: str) -> None:
    assert chosen_yardstick("auto", threads=threads, cpus_used=cpus_used) == name
    assert chosen_yardstick("memory", threads=threads, cpus_used=cpus_used) == "memory"


def test_only_the_parallel_one_has_threads_and_no_more_than_there_are_cpus() -> None:
    assert yardstick_threads("parallel", threads=8, cpus=4) == 4
    assert yardstick_threads("parallel", threads=2, cpus=4) == 2
    assert yardstick_threads("parallel", threads=2, cpus=0) == 1
    assert {yardstick_threads(name, threads=8, cpus=8) for name in ("serial", "memory")} == {1}
