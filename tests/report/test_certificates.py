"""Certificates of self-checks as lines, and on the page of a run."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.certificate import Amount, Certificate, CheckLine
from pytest_ortbench.report.certificates import check_line, counts, page_facts, run_lines
from tests.results_factory import make_result, make_run

LOOP = CheckLine(
    check="loop",
    about="our loop against a bare one",
    verdict="pass",
    cause="agrees",
    reason="both loops take as long",
    amounts=(Amount(name="ratio", value=1.0021, low=0.998, high=1.006),),
)
ENERGY = CheckLine(
    check="energy",
    about="counter against power",
    verdict="fail",
    cause="disagrees",
    reason="counter and power differ",
    amounts=(Amount(name="counter", value=100.0, unit="J"),),
    words={"device": "GPU-1"},
)
DEVICE = CheckLine(
    check="device",
    about="the device asked for",
    verdict="unchecked",
    cause="none",
    reason="it has no device\x1b[31m of its own",
)
CERTIFICATE = Certificate(
    provider="cpu",
    provider_name="CPUExecutionProvider",
    runtime="current",
    runtime_version="1.32.0",
    distributions={"onnxruntime": "1.32.0"},
    ortbench_version="0.1.0",
    made_at="2026-11-29T20:00:00+00:00",
    machine={},
    lines=(LOOP, ENERGY, DEVICE),
)


def test_the_lines_of_a_certificate() -> None:
    assert [check_line(line, len("energy")) for line in CERTIFICATE.lines] == [
        "  loop    pass              both loops take as long: ratio 1.002 [0.9980, 1.006]",
        "  energy  fail              counter and power differ: counter 100.0 J, device GPU-1",
        "  device  can't be checked  it has no device\\x1b[31m of its own",
    ]


def test_below_a_table_only_what_failed_has_a_line() -> None:
    run = replace(make_run([make_result()]), certificates=(replace(CERTIFICATE, short=True),))
    assert run_lines(run) == [
        "",
        "self-check of cpu in current, ONNX Runtime 1.32.0, short form, 2026-11-29: "
        "1 pass, 1 fail, 1 can't be checked",
        "  energy  fail  counter and power differ: counter 100.0 J, device GPU-1",
    ]


def test_a_run_without_one_says_nothing() -> None:
    run = make_run([make_result()])
    assert (run_lines(run), page_facts(run)) == ([], {})


def test_the_page_has_every_line() -> None:
    run = replace(make_run([make_result()]), certificates=(CERTIFICATE,))
    [(heading, facts)] = page_facts(run).items()
    assert heading == "Self-check of cpu in current"
    assert list(facts) == ["result", "made", "loop", "energy", "device"]
    assert facts["energy"].startswith("fail: ")


def test_what_could_not_be_checked_is_never_a_pass() -> None:
    nothing = replace(CERTIFICATE, lines=(DEVICE,))
    assert (nothing.is_empty, nothing.has_failed) == (True, False)
    assert counts(nothing) == "1 can't be checked"
    assert counts(replace(CERTIFICATE, lines=())) == "nothing was checked"
