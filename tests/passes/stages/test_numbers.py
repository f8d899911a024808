"""The numbers of stages, and of limits on them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import check_limits, samples_for_limits
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.stages.declaration import PASS
from pytest_ortbench.passes.stages.facts import Stages, StageWorker
from tests.results_factory import make_case, make_result, make_samples

MS = 1_000_000


def staged(count: int = 40) -> CaseResult:
    """Worker ``n`` takes 2, 10 + n and 1 ms a frame, one in ten frames twice as long."""

    def worker(number: int) -> StageWorker:
        factors = [2 if index % 10 == 9 else 1 for index in range(count)]
        parts = [[ms * MS * factor for factor in factors] for ms in (2, 10 + number, 1)]
        return StageWorker(
            preprocess=make_samples(parts[0]),
            inference=make_samples(parts[1]),
            postprocess=make_samples(parts[2]),
            frame=make_samples([sum(each) for each in zip(*parts, strict=True)]),
            overlapped=100,
            overlapped_ns=(10 + number) * 100 * MS,
        )

    return with_workers(tuple(worker(number) for number in range(3)))


def with_workers(workers: tuple[StageWorker, ...], reason: str = "") -> CaseResult:
    functions = ("preprocess", "postprocess")
    stages = Stages(file="own.py", functions=functions, frames=1, workers=workers, reason=reason)
    return replace(make_result(case=replace(make_case(), batch=4)), stages=stages)


def test_every_stage_follows_the_rules_of_latency() -> None:
    found = summarise(staged()).quantities
    frame = found["frame_p50"]
    # Logarithms of 13, 14 and 15 have the mean 2.637352 and the deviation 0.071566; Student's t
    # of three is 4.302653, so the ends lie 0.177779 from the mean.
    assert (frame.value, frame.low, frame.high) == pytest.approx((0.014, 0.01169982, 0.01669537))
    assert frame.samples == 120
    assert found["preprocess_p50"].value == pytest.approx(0.002)
    assert found["frame_inference_p50"].value == pytest.approx(0.011)
    assert found["postprocess_p50"].value == pytest.approx(0.001)
    # Every tenth takes twice as long, so the 90th percentile is the slowest worker's usual time.
    assert found["frame_p90"].value == pytest.approx(0.015)


def test_too_few_frames_give_no_tail() -> None:
    summary = summarise(staged(count=40))
    assert "frame_p99" not in summary.quantities
    assert summary.missing["frame_p99"] == "n<368"
    assert summarise(staged(count=130)).quantities["frame_p99"].value == pytest.approx(0.03)


def test_rates_count_items() -> None:
    found = summarise(staged()).quantities
    # 120 frames of 4 items in 36 usual and 4 double ones of each worker: 44 x (13 + 14 + 15) ms.
    assert found["frame_rate"].value == pytest.approx(480 / (44 * 0.042))
    assert found["pipeline_rate"].value == pytest.approx(4 * 300 / 3.3)
    low, high = found["pipeline_rate"].low, found["pipeline_rate"].high
    # 4 items in 12, 11 and 10 ms: the mean logarithm is 5.898921, its reach 4.302653 * 0.091192
    # / sqrt(3).
    assert (low, high) == pytest.approx((290.7275, 457.3527))


def test_frames_of_one_process_are_as_uncertain_as_its_inferences() -> None:
    stages = staged().stages
    assert stages is not None
    found = summarise(with_workers(stages.workers[:1])).quantities
    for name in ("frame_p50", "pipeline_rate"):
        ends = (found[name].low, found[name].high)
        assert ends == pytest.approx((0.95 * found[name].value, 1.05 * found[name].value)), name


def test_what_was_not_asked_for_or_failed_has_its_reason() -> None:
    summary = summarise(make_result())
    assert {summary.missing[name] for name in PASS.metric_names} == {
        "no stages were given (--ort-stages)"
    }
    summary = summarise(with_workers((), "own.py:3: it broke"))
    assert {summary.missing[name] for name in PASS.metric_names} == {"own.py:3: it broke"}
    stages = staged().stages
    assert stages is not None
    one = with_workers((replace(stages.workers[0], postprocess=None),))
    assert summarise(one).missing["postprocess_p50"] == "own.py has no postprocess"


def test_a_limit_on_a_frame() -> None:
    result = staged()
    broken, kept = (
        parse_limit(text, place="here") for text in ("frame_p90 <= 14.9 ms", "frame_p90 <= 15.1 ms")
    )
    outcomes = check_limits([broken, kept], summarise(result))
    assert [outcome.judgement.is_good for outcome in outcomes] == [False, True]
    assert outcomes[0].judgement.reason.startswith("frame_p90 is 15")


def test_a_limit_on_the_tail_of_a_frame_says_how_long_it_takes() -> None:
    limit = parse_limit("frame_p99 <= 30 ms", place="here")
    assert samples_for_limits([limit]) == 368
    [outcome] = check_limits([limit], summarise(staged()))
    assert outcome.judgement.is_unjudged
    # 120 frames took 1.848 s; a fifth more than what 368 need.
    assert "It has 120 samples and needs 368: use --ort-time=6.9" in outcome.judgement.reason
