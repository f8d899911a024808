"""A stored run as the baseline."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ortbench.analysis.judgements import judgements_of
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.gate import GateResult, MetricVerdict
from pytest_ortbench.core.outcome import Accuracy, CaseResult, Flag, OutputAccuracy, OutputCheck
from pytest_ortbench.core.run import Canary, Machine
from pytest_ortbench.gate.numbers.metrics import MetricSide, judge_metrics
from pytest_ortbench.gate.numbers.rules import CaseRules, parse_rules
from pytest_ortbench.gate.numbers.stored import gate_runs
from pytest_ortbench.gate.numbers.undecided import undecided
from pytest_ortbench.passes.export_check.facts import CheckedSizes, ExportCheck
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.passes.task.facts import TaskAccuracy
from tests.results_factory import (
    make_accuracy,
    make_case,
    make_measurement,
    make_memory,
    make_placement,
    make_result,
    make_run,
)

METAL = Machine(
    host="lab",
    stable={"cpu": "Example CPU 3000", "virtualisation": "none seen", "cpu_quota": "none"},
)
CLOUD = dataclasses.replace(METAL, stable={**METAL.stable, "virtualisation": "KVM"})


def judged(before, after, *, machine=METAL, earlier=None, rules=(), canary=1.0) -> GateResult:
    one = make_run([before], machine=earlier or machine)
    other = make_run([after], machine=machine)
    if canary is not None:
        one = dataclasses.replace(one, canary=Canary(model="c", durations_ns=(100, 100, 100)))
        ns = round(100 * canary)
        other = dataclasses.replace(other, canary=Canary(model="c", durations_ns=(ns, ns)))
    (result,) = gate_runs(one, other, parse_rules(rules, place="--ort-gate"))
    return result


def result_of(median_ns: int, **options):
    return make_result(median_ns=median_ns, spread=0.002, **options)


# Latency.


@pytest.mark.parametrize(
    ("after_ns", "verdict"), [(3_000_000, "same"), (3_300_000, "slower"), (2_700_000, "faster")]
)
def test_on_the_same_dedicated_machine_latency_is_gated(after_ns: int, verdict: str):
    result = judged(result_of(3_000_000), result_of(after_ns, seed=9), canary=1.0)
    assert result.verdict == verdict
    assert bool(result.failures) == (verdict == "slower")
    assert result.contrasts[0].effect == pytest.approx(after_ns / 3_000_000 - 1, abs=0.002)


@pytest.mark.parametrize("single", ["before", "after"])
@pytest.mark.parametrize("after_ns", [3_000_000, 6_000_000])
def test_a_side_of_one_process_decides_nothing(single: str, after_ns: int) -> None:
    """Neither that it got slower nor that it is as fast: the next process was not seen."""
    sides = {"before": result_of(3_000_000), "after": result_of(after_ns, seed=9)}
    alone = dataclasses.replace(sides[single], measurements=sides[single].measurements[:1])
    sides[single] = dataclasses.replace(alone, flags=flags_of(alone))
    result = judged(sides["before"], sides["after"], canary=1.0)
    assert (result.verdict, result.cause) == ("inconclusive", "flags")


def test_other_cpus_are_compared_but_not_gated():
    # G1
    other = dataclasses.replace(METAL, stable={**METAL.stable, "cpu": "Other CPU"})
    result = judged(result_of(3_000_000), result_of(6_000_000), machine=other, earlier=METAL)
    assert result.verdict == "incomparable"
    assert result.cause == "machine"
    assert result.failures == ()


HERE = "http://127.0.0.1:8011/v2/models/m/infer"


def behind(url: str, app: str = "") -> Case:
    """A case of a service at an address."""
    options = {"url": url, **({"app": app} if app else {})}
    provider = Provider(name="endpoint", alias="endpoint", role="endpoint", options=options)
    return dataclasses.replace(make_case(), provider=provider)


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (behind(HERE), behind(HERE), ""),
        (behind(HERE, "/a/app.py:app"), behind(HERE, "/b/app.py:app"), ""),
        (behind(HERE), behind(HERE.replace("8011", "8012")), "workload"),
        (behind(HERE, "reference"), behind(HERE, "/a/app.py:app"), "workload"),
        # Nothing tells that the machine there is the same one.
        (*(behind(HERE.replace("127.0.0.1", "10.0.0.7")),) * 2, "machine"),
        (*(behind("custom:/a/client.py:call"),) * 2, "machine"),
    ],
)
def test_latency_of_a_service_is_gated_where_the_service_is_the_same(before, after, cause) -> None:
    one, other = result_of(3_000_000, case=before), result_of(6_000_000, case=after, seed=9)
    result = judged(one, other)
    assert result.cause == cause
    assert result.verdict == ("incomparable" if cause else "slower")


def test_what_was_fed_otherwise_is_compared_but_not_gated():
    case = make_case()
    wider = dataclasses.replace(case.inputs[0], shape=(1, 3, 256, 256))
    for changed, reason in (
        (
            dataclasses.replace(case, inputs=(wider,)),
            "input input: tensor(float) [1, 3, 224, 224] → tensor(float) [1, 3, 256, 256]",
        ),
        (dataclasses.replace(case, seed=7), "seed: 0 → 7"),
    ):
        result = judged(result_of(3_000_000), result_of(6_000_000, case=changed))
        assert (result.verdict, result.reason) == ("incomparable", reason)


def on_device(result: CaseResult, *software: str) -> CaseResult:
    """The result, each worker of which computed on one of these in the place of a device."""
    workers = (
        dataclasses.replace(
            worker,
            runtime=dataclasses.replace(
                worker.runtime, software_device=software[index % len(software)]
            ),
        )
        for index, worker in enumerate(result.measurements)
    )
    return dataclasses.replace(result, measurements=tuple(workers))


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ("SwiftShader", "", True),
        ("", "SwiftShader", True),
        ("SwiftShader", "llvmpipe", True),
        ("SwiftShader", "SwiftShader", False),
    ],
)
def test_another_device_in_software_makes_a_case_incomparable(
    before: str, after: str, differ: bool
) -> None:
    one = on_device(result_of(3_000_000), before)
    other = on_device(result_of(9_000_000, seed=9), after)
    result = judged(one, other, rules=["accuracy_sqnr:1%", "peak_rss:5%", "peak_rss<1GB"])
    assert (result.verdict, result.cause) == (
        ("incomparable", "device") if differ else ("slower", "")
    )
    relative = {verdict.verdict for verdict in result.metrics if verdict.bound is None}
    assert (relative == {"incomparable"}) is differ
    # What must be kept whatever a baseline has is kept on any device.
    assert [verdict.verdict for verdict in result.metrics if verdict.bound is not None] == ["same"]


def test_a_side_that_failed_tells_of_no_device() -> None:
    one = on_device(result_of(3_000_000), "SwiftShader")
    assert judged(one, make_result(status="unavailable")).cause == "status"


def fed_from(content: str, *, labelled: str = "l") -> Case:
    """A case whose input comes from a file, and that is scored on another one."""
    case = make_case()
    return dataclasses.replace(
        case,
        inputs=(dataclasses.replace(case.inputs[0], path="/data/photos.npz"),),
        dataset=Dataset(path="/data/labels.npz"),
        file_contents={"/data/photos.npz": content, "/data/labels.npz": labelled},
    )


def test_other_values_in_the_files_of_inputs_are_another_work():
    before, after = (
        result_of(3_000_000, case=fed_from(content)) for content in ("a" * 64, "b" * 64)
    )
    result = judged(before, after, rules=["accuracy_sqnr:1%"])
    assert (result.verdict, result.cause) == ("incomparable", "workload")
    assert "aaaaaaaaaaaa → bbbbbbbbbbbb" in result.reason
    verdicts = {verdict.metric: verdict.verdict for verdict in result.metrics}
    assert verdicts["accuracy_sqnr"] == "incomparable"
    assert verdicts["model_size"] == "same"


def test_the_same_values_at_another_place_are_the_same_work():
    before = fed_from("a" * 64)
    moved = dataclasses.replace(before.inputs[0], path="/elsewhere/photos.npz")
    after = dataclasses.replace(
        before,
        inputs=(moved,),
        file_contents={moved.path: "a" * 64, "/data/labels.npz": "l"},
    )
    result = judged(result_of(3_000_000, case=before), result_of(3_000_000, case=after, seed=9))
    assert result.verdict == "same"


def test_values_from_a_file_and_drawn_ones_are_not_the_same_work():
    before, after = result_of(3_000_000), result_of(3_000_000, case=fed_from("a" * 64))
    assert judged(before, after).cause == "workload"


def test_other_labels_leave_the_latency_and_not_the_score_of_the_task():
    scores = TaskAccuracy(dataset="d", metric="top-1", samples=100, score_sum=90.0, largest=1.0)
    before, after = (
        dataclasses.replace(
            result_of(3_000_000, case=fed_from("a", labelled=labelled), seed=seed), task=scores
        )
        for labelled, seed in (("l", 0), ("m", 9))
    )
    result = judged(before, after, rules=["task_metric:1%"])
    assert result.verdict == "same"
    verdicts = {verdict.metric: verdict.verdict for verdict in result.metrics}
    assert verdicts["task_metric"] == "incomparable"


def test_on_a_shared_machine_without_a_yardstick_latency_only_informs():
    result = judged(result_of(3_000_000), result_of(6_000_000), machine=CLOUD)
    assert result.verdict == "incomparable"
    assert result.cause == "yardstick"
    assert result.failures == ()


def test_without_a_canary_of_both_runs_latency_decides_nothing():
    result = judged(result_of(3_000_000), result_of(3_300_000), canary=None)
    assert (result.verdict, result.failures) == ("incomparable", ())
    assert result.cause == "canary"


def test_a_changed_canary_says_that_the_machine_changed():
    result = judged(result_of(3_000_000), result_of(3_300_000), canary=1.1)
    assert (result.verdict, result.failures) == ("incomparable", ())
    assert result.cause == "canary"


def test_recorded_noise_beyond_the_margin_is_inconclusive():
    noisy = make_result(
        measurements=[
            make_measurement([ns] * 50, worker=index)
            for index, ns in enumerate((3_000_000, 3_100_000, 3_500_000))
        ]
    )
    result = judged(noisy, noisy)
    assert (result.verdict, result.failures) == ("inconclusive", ())
    assert "recorded noise" in result.warnings[0]


def test_few_samples_give_no_verdict():
    # G6: 1 s of budget and 0.4 s a call are two samples.
    few = make_result(workers=1, measurements=[make_measurement([400_000_000, 410_000_000])])
    result = judged(few, few)
    assert result.verdict == "inconclusive"
    assert result.cause == "median"


def test_a_blurring_flag_makes_it_inconclusive():
    after = result_of(3_300_000, flags=[Flag(name="STEAL", detail="9 %")])
    result = judged(result_of(3_000_000), after)
    assert (result.verdict, result.failures) == ("inconclusive", ())
    assert result.cause == "flags"


def test_a_margin_of_ones_own():
    pair = result_of(3_000_000), result_of(3_300_000)
    assert judged(*pair, rules=["latency:15%"]).verdict == "same"
    assert judged(*pair, rules=["latency:9%"]).verdict == "slower"


# What is gated always, here on another machine.


def with_peak(peak_bytes: int):
    return make_result(
        measurements=[
            make_measurement(worker=index, memory=make_memory(peak_bytes=peak_bytes, worker=index))
            for index in range(3)
        ]
    )


def failing(result: GateResult) -> list[str]:
    """Return what each finding is about that fails the case."""
    return [finding.about for finding in result.findings if finding.fails]


@pytest.mark.parametrize(
    ("peak", "fails"),
    # 60 MB and 8 kB are the largest of the baseline, 2 % of which are more than 1 MiB.
    [(60_000_000, False), (61_200_000, False), (61_220_000, True), (50_000_000, False)],
)
def test_memory_is_gated_by_what_every_worker_took(peak: int, fails: bool):
    result = judged(with_peak(60_000_000), with_peak(peak), machine=CLOUD)
    assert failing(result) == ["peak_rss"] * fails


def test_one_worker_that_took_more_decides_nothing():
    after = with_peak(60_000_000)
    worst = make_measurement(memory=make_memory(peak_bytes=90_000_000), worker=2)
    after = dataclasses.replace(after, measurements=(*after.measurements[:2], worst))
    assert judged(with_peak(60_000_000), after, machine=CLOUD).failures == ()


def test_size_placement_accuracy_and_status():
    before = make_result(case=make_case(provider="cuda"))
    larger = make_result(case=make_case(provider="cuda", variant_bytes=15_000_000))
    (finding,) = judged(before, larger, machine=CLOUD).findings
    assert (finding.about, finding.worse_by) == ("model_size", pytest.approx(1 / 14))
    elsewhere = make_placement("CUDAExecutionProvider", elsewhere={"Cast": 3})
    partial = make_result(case=make_case(provider="cuda"), placement=elsewhere)
    assert failing(judged(before, partial, machine=CLOUD)) == ["placement"]
    wrong = make_result(
        case=make_case(provider="cuda"),
        accuracy=make_accuracy(sqnr_db=9.0),
        flags=[Flag(name="INACCURATE", detail="SQNR 9.0 dB")],
    )
    assert failing(judged(before, wrong, machine=CLOUD)) == ["accuracy"]
    # What was wrong before is no news.
    assert judged(wrong, wrong, machine=CLOUD).failures == ()
    crashed = make_result(case=make_case(provider="cuda"), status="crash")
    assert failing(judged(before, crashed, machine=CLOUD)) == ["status"]
    assert judged(crashed, before, machine=CLOUD).failures == ()


def test_absolute_limits():
    kept, broken = "accuracy_sqnr:>=100", "accuracy_sqnr:>=130"
    assert judged(make_result(), make_result(), rules=[kept]).failures == ()
    result = judged(make_result(), make_result(), rules=[broken])
    assert failing(result) == ["accuracy_sqnr"]
    (verdict,) = [verdict for verdict in result.metrics if verdict.metric == "accuracy_sqnr"]
    assert (verdict.verdict, verdict.contender, verdict.bound) == ("worse", 120, 130)


def test_vanished_cases_fail_and_new_ones_do_not():
    # G4
    before = make_run([make_result(case=make_case(model="old"))], run_id="r1")
    after = make_run([make_result(case=make_case(model="new"))])
    (result,) = gate_runs(before, after, ())
    assert result.removed
    assert not result.compares
    (finding,) = result.findings
    assert (finding.about, finding.fails) == ("removed", True)
    assert result.failures == (finding.text,)


# What got lost.


def without_memory(result):
    measurements = tuple(
        dataclasses.replace(one, memory=dataclasses.replace(one.memory, peak_bytes=None))
        for one in result.measurements
    )
    return dataclasses.replace(result, measurements=measurements)


def test_placement_and_accuracy_that_got_lost_are_worse():
    after = dataclasses.replace(
        result_of(3_000_000), placement=None, accuracy=Accuracy(reason="no reference: it died")
    )
    result = judged(result_of(3_000_000), after)
    assert failing(result) == ["accuracy", "placement"]


def _accuracy_verdict(before: CaseResult, after: CaseResult) -> MetricVerdict:
    flagged = [dataclasses.replace(one, flags=flags_of(one)) for one in (before, after)]
    verdicts = judge_metrics(MetricSide.of(flagged[0]), MetricSide.of(flagged[1]), CaseRules())
    (verdict,) = (one for one in verdicts if one.metric == "accuracy")
    return verdict


def with_accuracy(accuracy: Accuracy | None, nonfinite: int = 0) -> CaseResult:
    check = OutputCheck(run="first", nonfinite=nonfinite, constant=False, digest="d")
    measured = make_measurement(output_checks=[check])
    return dataclasses.replace(make_result(measurements=[measured]), accuracy=accuracy)


@pytest.mark.parametrize(
    ("accuracy", "nonfinite", "reason"),
    [
        (make_accuracy(sqnr_db=None), 7, "both sides are NONFINITE"),
        (make_accuracy(sqnr_db=9.0), 0, "both sides are INACCURATE"),
        (
            Accuracy(reason="the graph draws random numbers (RandomNormal)"),
            0,
            "accuracy can't be judged on either side: the graph draws random numbers "
            "(RandomNormal)",
        ),
        (
            None,
            0,
            "accuracy can't be judged on either side: outputs were not compared with a reference",
        ),
    ],
)
def test_what_is_wrong_or_unknown_on_both_sides_is_not_the_same(accuracy, nonfinite, reason):
    side = with_accuracy(accuracy, nonfinite)
    verdict = _accuracy_verdict(side, side)
    assert (verdict.verdict, verdict.reason) == ("informs", reason)


def exported(export_check: ExportCheck | None) -> CaseResult:
    return dataclasses.replace(
        with_accuracy(make_accuracy(sqnr_db=None)), export_check=export_check
    )


def test_a_judgement_of_the_export_that_got_lost_is_not_the_same():
    output = OutputAccuracy(name="logits", kind="float", finite=True, exact=True, compared=8)
    judged_once = exported(ExportCheck(choices=(CheckedSizes(samples=8, outputs=(output,)),)))
    missing = "the source could not be loaded"
    unjudged = exported(ExportCheck(reason=missing))
    assert _accuracy_verdict(judged_once, judged_once).verdict == "same"
    lost = _accuracy_verdict(judged_once, unjudged)
    assert lost.verdict == "worse"
    assert missing in lost.reason
    # Nobody asked for it this time (--ort-export-check=off).
    absent = _accuracy_verdict(judged_once, exported(None))
    assert absent.verdict == "incomparable"
    parts = [part.about for part in undecided(judged(judged_once, exported(None)))]
    assert "accuracy" in parts
    assert _accuracy_verdict(unjudged, unjudged).verdict == "informs"
    assert _accuracy_verdict(exported(None), judged_once).verdict == "same"


def test_every_judgement_of_a_pass_is_one_of_answers():
    """What the declaration of a pass says that it judges is what its judgement is of."""
    task = TaskAccuracy(dataset="d.npz", metric="top-1", samples=0, score_sum=0.0, largest=1.0)
    result = dataclasses.replace(exported(ExportCheck(reason="none")), task=task)
    names = {entry.judgement for entry in PASSES if entry.judge}
    assert names == {"export", "task"}
    assert {judgement.of for judgement in judgements_of(result)} - names == {
        "accuracy",
        "placement",
        "warm-up",
    }
    lost = _accuracy_verdict(with_accuracy(make_accuracy()), result)
    assert lost.verdict == "informs"


def test_nan_on_the_new_side_is_worse():
    fine = with_accuracy(make_accuracy(sqnr_db=None))
    verdict = _accuracy_verdict(fine, with_accuracy(make_accuracy(sqnr_db=None), 7))
    assert (verdict.verdict, verdict.reason.split()[:2]) == ("worse", ["NONFINITE:", "7"])
    assert _accuracy_verdict(fine, fine).verdict == "same"


def test_a_cut_warm_up_is_no_matter_of_answers():
    fine = with_accuracy(make_accuracy(sqnr_db=None))
    short = make_measurement([3_000_000])
    cold = dataclasses.replace(short.warm_up, steady=False, rule="cut off")
    slow = dataclasses.replace(fine, measurements=(dataclasses.replace(short, warm_up=cold),))
    assert _accuracy_verdict(fine, slow).verdict == "same"


def test_other_numbers_that_got_lost_are_warned_of_and_fail_if_they_were_asked_for():
    before, after = result_of(3_000_000), without_memory(result_of(3_000_000))
    result = judged(before, after)
    assert [(finding.about, finding.fails) for finding in result.findings] == [("peak_rss", False)]
    result = judged(before, after, rules=["peak_rss:5%"])
    assert failing(result) == ["peak_rss"]
    assert judged(after, before, rules=["peak_rss:5%"]).failures == ()


def test_a_case_that_the_baseline_lacks_is_held_to_its_absolute_limits():
    old, new = make_case(model="old"), make_case(model="new")
    before = make_run([make_result(case=old)])
    after = make_run([make_result(case=old), make_result(case=new)])
    rules = parse_rules(["new*@latency_p50:<=1ms", "peak_rss:2%"], place="--limits")
    _, result = gate_runs(before, after, rules)
    assert (result.case_id, result.baseline) == ("new/native/cpu/b1", "no baseline")
    (failure,) = result.failures
    assert "latency_p50 is 3.0" in failure
    # Relative ones need a baseline.
    assert len(gate_runs(before, after, parse_rules(["peak_rss:2%"], place="--limits"))) == 1
    assert (result.has_baseline, result.compares, result.cause) == (False, False, "limits")


@pytest.mark.parametrize("name", ["vanished.onnx", "no baseline", "x was removed", "interrupted"])
def test_what_things_are_called_decides_nothing(name: str) -> None:
    before = result_of(3_000_000, case=make_case(model=name))
    one, other = (
        dataclasses.replace(
            make_run([result], machine=METAL),
            run_id=name,
            canary=Canary(model="c", durations_ns=(100, 100, 100)),
        )
        for result in (before, result_of(3_000_000, seed=9, case=make_case(model=name)))
    )
    (result,) = gate_runs(one, other, ())
    assert (result.baseline, result.verdict, result.cause) == (name, "same", "")
    assert (result.failures, result.removed, result.compares) == ((), False, True)
    (gone,) = gate_runs(one, dataclasses.replace(other, cases=()), ())
    assert (gone.removed, gone.cause, gone.has_baseline) == (True, "removed", True)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "worse"),
        ({"executable": "/tox/bin/python"}, "incomparable"),
        ({"python": "3.14.0"}, "incomparable"),
    ],
)
def test_memory_of_another_interpreter_is_not_compared(changed: dict[str, str], verdict: str):
    def with_peak(peak_bytes: int, **facts: str) -> CaseResult:
        result = result_of(3_000_000)
        measurements = tuple(
            dataclasses.replace(
                own,
                memory=make_memory(peak_bytes=peak_bytes),
                runtime=dataclasses.replace(own.runtime, **facts),
            )
            for own in result.measurements
        )
        return dataclasses.replace(result, measurements=measurements)

    before, after = with_peak(30_000_000), with_peak(40_000_000, **changed)
    found = judged(before, after)
    of_memory = next(entry for entry in found.metrics if entry.metric == "peak_rss")
    assert of_memory.verdict == verdict
    assert all(name in of_memory.reason for name in changed)
    findings = {finding.about: finding.fails for finding in found.findings}
    assert findings["peak_rss"] is (verdict == "worse")
