"""Peak memory of real models: it repeats, and nothing but the case is in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.model import Model
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.plan.matrix import Target, build_plan
from pytest_ortbench.plan.request import PlanRequest
from pytest_ortbench.zoo.resolve import resolve_models

pytestmark = [
    pytest.mark.needs("network"),
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only"),
]

MODELS = ("silero-vad", "rapidocr-det", "magika")
#: The peak of these does not depend on how the threads of a session meet in the allocator.
STEADY = ("ddddocr-det", "rapidocr-det", "magika")
CPU = Provider(alias="cpu", name="CPUExecutionProvider")
MEGABYTE = 1_000_000

#: Allocates 200 MB before the worker does anything, and frees them again.
ALLOCATES = """
spare = bytearray(200_000_000)
for at in range(0, len(spare), 4096):
    spare[at] = 1
del spare
"""


@pytest.fixture
def case_of(request: pytest.FixtureRequest) -> Callable[[str], Case]:
    def make(name: str) -> Case:
        [model] = resolve_models([f"zoo:{name}"], root=request.config.rootpath)
        assert isinstance(model, Model), getattr(model, "error", "")
        target = Target(runtime=Runtime(), providers=(CPU,))
        [planned] = build_plan(PlanRequest(models=()), [model], [target]).entries
        return planned.case

    return make


def peak(launcher: ProcessLauncher, case: Case) -> int:
    with closing(launcher.open(case, worker=0, deadline=None)) as worker:
        worker.block(3)
        found = worker.memory().peak_bytes
    assert found is not None
    return found


def closest_peaks(case: Case) -> list[int]:
    """Of three times three workers those that agree best: a kernel under pressure takes pages away
    from a process while it is measured, which lowers its mark now and then."""
    with closing(ProcessLauncher()) as launcher:
        tries = [[peak(launcher, case) for _ in range(3)] for _ in range(3)]
    return min(tries, key=lambda peaks: max(peaks) - min(peaks))


@pytest.mark.parametrize("name", STEADY)
def test_the_peak_repeats_within_two_percent_over_three_workers(
    name: str, case_of: Callable[[str], Case]
) -> None:
    peaks = closest_peaks(case_of(name))
    assert min(peaks) > MEGABYTE
    assert max(peaks) - min(peaks) <= 0.02 * min(peaks), peaks


def test_a_small_model_on_several_threads_repeats_within_what_a_gate_allows(
    case_of: Callable[[str], Case],
) -> None:
    """Of 27 MB 2 % are half a megabyte: 1 MiB is what the gate allows in any case."""
    peaks = closest_peaks(case_of("silero-vad"))
    assert min(peaks) > 20 * MEGABYTE
    assert max(peaks) - min(peaks) <= max(0.02 * min(peaks), 2**20), peaks


@pytest.mark.parametrize("name", MODELS)
def test_200_megabytes_before_the_case_do_not_show(
    name: str, case_of: Callable[[str], Case], tmp_path: Path
) -> None:
    """T8: neither those that the worker had before it began, nor those that the host has."""
    case = case_of(name)
    (tmp_path / "sitecustomize.py").write_text(ALLOCATES)
    runtime = replace(case.runtime, environment={"PYTHONPATH": str(tmp_path)})
    with closing(ProcessLauncher()) as launcher:
        plain = peak(launcher, case)
        allocated = peak(launcher, replace(case, runtime=runtime))
        held = np.ones(200 * MEGABYTE, np.uint8)
        with_large_host = peak(launcher, case)
        del held
    for found in (allocated, with_large_host):
        assert abs(found - plain) <= 0.02 * plain + MEGABYTE, (plain, allocated, with_large_host)
