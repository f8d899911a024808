"""A run that is compared with itself: the answer is that of its own report, whatever it holds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.sentences import sentences, verdicts
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.certificate import Certificate, CheckLine
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.run import Run
from pytest_ortbench.fleet.numbers.facts import reduce_run
from pytest_ortbench.fleet.numbers.matrix import by_case
from pytest_ortbench.fleet.numbers.sentences import warnings
from pytest_ortbench.fleet.numbers.sides import lay_out_sides
from pytest_ortbench.fleet.report.view import build_view
from tests.results_factory import make_accuracy, make_case, make_result, make_run


def at(precision: str, provider: str, ms: float, *flags: str, photos: str = "") -> CaseResult:
    lossy = precision.startswith("int8")
    return make_result(
        case=make_case(precision=precision, provider=provider, inputs_file=photos),
        median_ns=round(ms * 1e6),
        accuracy=make_accuracy(sqnr_db=25.0 if lossy else 120.0),
        flags=[Flag(name=name) for name in flags],
    )


def mixtures() -> list[Run]:
    """Return runs of ties, leads, flags, unlabelled and drawn inputs."""
    runs = []
    for fast, other, flags, photos in itertools.product(
        (1.0, 2.0, 2.004), (1.0, 3.0), ((), ("CPU-SHARE",), ("INACCURATE",)), ("", "photos.npz")
    ):
        results = [
            at("fp32", "cpu", 2.0, photos=photos),
            at("int8-static", "cpu", fast, *flags, photos=photos),
            at("fp32", "openvino", other, photos=photos),
            at("int8-static", "openvino", 0.9 * other, *flags, photos=photos),
        ]
        runs.append(make_run(results))
    return runs


@pytest.mark.parametrize("axis", ["provider", "precision"])
@pytest.mark.parametrize("metric", ["latency_p50", "throughput"])
def test_compare_and_report_recommend_the_same(axis: str, metric: str) -> None:
    compared = 0
    for run in mixtures():
        summaries = [summarise(result) for result in run.cases]
        own = [str(told) for answer in answers(run, summaries) for told in verdicts(answer)]
        try:
            view = build_view([reduce_run(run)], axis=axis, metric=metric)
        except UsageError:
            continue
        compared += 1
        assert [str(told) for told in view.answer[: len(own)]] == own
        assert [str(told) for told in view.answer if told.lead] == own
        of_report = [str(told) for answer in answers(run, summaries) for told in sentences(answer)]
        assert of_report[: len(own)] == own
    assert compared == len(mixtures())


def test_of_one_run_nothing_is_said_of_different_times() -> None:
    one = make_run([at("fp32", "cpu", 2.0), at("fp32", "openvino", 3.0)])
    layout = lay_out_sides([reduce_run(one)], "runtime")
    assert not warnings(by_case(layout, "latency_p50"), "runtime", 0)


def test_what_a_self_check_found_wrong_stands_beside_the_numbers() -> None:
    line = CheckLine(
        check="energy", about="", verdict="fail", cause="disagrees", reason="they differ"
    )
    certificate = Certificate(
        provider="cuda",
        provider_name="CUDAExecutionProvider",
        runtime="current",
        runtime_version="1.32.0",
        distributions={},
        ortbench_version="0.1.0",
        made_at="2026-11-29T20:00:00+00:00",
        machine={},
        lines=(line, replace(line, check="memory", verdict="unchecked")),
    )
    run = replace(make_run([at("fp32", "cpu", 2.0)]), certificates=(certificate,))
    facts = reduce_run(run)
    assert facts.failed_checks == ("cuda: energy",)
    layout = lay_out_sides([facts], "runtime")
    [told] = warnings(by_case(layout, "latency_p50"), "runtime", 0)
    assert f"{run.machine.host} cuda: energy" in told
