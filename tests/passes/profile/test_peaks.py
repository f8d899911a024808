"""One peak for the cases of a run that share it: the best of all measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.profile.facts import OperatorProfile, Peak
from pytest_ortbench.passes.profile.numbers.peaks import disagreement, with_shared_peaks
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.schema.document import decode_run, encode_run
from tests.results_factory import make_case, make_result, make_run


def profiled(batch: int, peak: Peak | None, *, runtime: str = "current") -> CaseResult:
    case = replace(make_case(batch=batch), runtime=Runtime(label=runtime))
    return replace(make_result(case=case), profile=OperatorProfile(run_ns=1, peak=peak))


def peak(
    macs: float, moved: float, *, element: str = "float", threads: int = 2, trials: bool = True
) -> Peak:
    return Peak(
        macs_per_s=macs,
        bytes_per_s=moved,
        provider="CPUExecutionProvider",
        element=element,
        threads=threads,
        product=f"{macs:.0f}",
        macs_trials_per_s=(macs, macs / 2) if trials else (),
        bytes_trials_per_s=(moved,) if trials else (),
    )


def peaks(run: Run) -> list[Peak]:
    return [
        result.profile.peak
        for result in run.cases
        if result.profile is not None and result.profile.peak is not None
    ]


def test_the_best_of_a_run_holds_for_all_that_share_it() -> None:
    run = make_run(
        [
            profiled(1, peak(42e9, 14e9)),
            profiled(2, peak(87e9, 12e9)),
            profiled(3, peak(200e9, 15e9, element="uint8")),
            profiled(4, peak(20e9, 8e9, threads=1)),
            profiled(5, peak(99e9, 99e9), runtime="onnxruntime-1.20.1"),
            make_result(case=make_case(batch=6)),
            profiled(7, None),
        ]
    )
    found = peaks(with_shared_peaks(run))
    # Products by element type; memory has none. Other threads and runtimes are other peaks.
    assert [each.macs_per_s for each in found] == [87e9, 87e9, 200e9, 20e9, 99e9]
    assert [each.bytes_per_s for each in found] == [15e9, 15e9, 15e9, 8e9, 99e9]
    assert found[0].product == found[1].product == f"{87e9:.0f}"
    assert [each.element for each in found] == ["float", "float", "uint8", "float", "float"]
    assert found[0].macs_trials_per_s == (42e9, 21e9, 87e9, 43.5e9)
    assert found[0].bytes_trials_per_s == (14e9, 12e9, 15e9)
    # What the reports show, also of a stored run.
    shown = shown_run(decode_run(encode_run(run), "here")).entries
    assert [
        each.result.profile.peak.macs_per_s
        for each in shown
        if each.result.profile is not None and each.result.profile.peak is not None
    ] == [87e9, 87e9, 200e9, 20e9, 99e9]


def test_another_device_and_other_options_have_roofs_of_their_own() -> None:
    def on(batch: int, rate: float, device: str, **options: str) -> CaseResult:
        found = profiled(batch, peak(rate, rate))
        provider = replace(found.case.provider, device=device, options=options)
        return replace(found, case=replace(found.case, provider=provider))

    run = make_run(
        [
            on(1, 40e9, "0"),
            on(2, 50e9, "0"),
            on(3, 900e9, "1"),
            on(4, 300e9, "0", precision="fp16", streams="2"),
            on(5, 200e9, "0", streams="2", precision="fp16"),
        ]
    )
    found = peaks(with_shared_peaks(run))
    assert [each.macs_per_s for each in found] == [50e9, 50e9, 900e9, 300e9, 300e9]
    assert [each.bytes_per_s for each in found] == [50e9, 50e9, 900e9, 300e9, 300e9]


def test_documents_without_trials_have_the_peaks_themselves() -> None:
    run = make_run(
        [profiled(1, peak(42e9, 14e9, trials=False)), profiled(2, peak(87e9, 14e9, trials=False))]
    )
    first, _ = peaks(with_shared_peaks(run))
    assert (first.macs_per_s, first.macs_trials_per_s) == (87e9, (42e9, 87e9))


def test_a_peak_that_could_not_be_had_takes_that_of_the_others() -> None:
    run = make_run([profiled(1, replace(peak(0, 1e9), macs_per_s=None, macs_trials_per_s=())),
                    profiled(2, peak(87e9, 14e9))])  # fmt: skip
    first, _ = peaks(with_shared_peaks(run))
    assert (first.macs_per_s, first.bytes_per_s) == (87e9, 14e9)


@pytest.mark.parametrize(
    ("trials", "share"), [((42.0, 87.0), 45 / 42), ((5.0,), 0.0), ((), 0.0), ((0.0, 1.0), 0.0)]
)
def test_how_much_trials_disagree(trials: tuple[float, ...], share: float) -> None:
    assert disagreement(trials) == pytest.approx(share)
