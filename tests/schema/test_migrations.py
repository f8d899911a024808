"""Documents of older versions: what their sentences decided stands in fields of today."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import SymbolSize
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.execution.passes import due
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.schema.document import (
    decode_head,
    decode_lines,
    decode_run,
    encode_run,
    faults_in,
)
from pytest_ortbench.store.resume import plan_fingerprint

VERSION_1 = Path(__file__).parent / "golden" / "v1.json"

#: Passes that came later than version 1 of the document, and those that it knew.
_LATER = ("generation", "export_check", "together", "transfers", "served", "endurance")
NAMES = [entry.name for entry in PASSES if entry.name not in _LATER]
#: As version 1 wrote it.
INTERRUPTED = "interrupted before it was over"

#: What version 1 kept of passes that gave nothing, by field of a case.
OUTCOMES: dict[str, dict[str, Any]] = {
    "energy": {},
    "profile": {},
    "soak": {},
    "stages": {"file": "own.py"},
    "start_ups": {},
    "task": {"dataset": "digits.npz"},
    "loads": {"spec": {"text": "offline", "scenario": "", "percent": 0.0}},
    "processes": {"asked": 2},
}


def document_of(reason: str) -> dict[str, Any]:
    """A document of version 1 whose first case has every pass, with this reason for no numbers."""
    document: dict[str, Any] = json.loads(VERSION_1.read_bytes())
    case = document["cases"][0]
    for name, outcome in OUTCOMES.items():
        absent = {**outcome, "reason": reason}
        case[name] = [absent] if name in ("loads", "processes") else absent
    case["case"]["sampling"] |= {"loads": ["offline"], "processes": [2]}
    return document


def read(document: dict[str, Any]) -> Run:
    return decode_run(json.dumps(document).encode(), "run.json")


@pytest.mark.parametrize(
    ("reason", "interrupted"),
    [
        (INTERRUPTED, True),
        ("", False),
        ("crash: the worker died", False),
        (f"{INTERRUPTED}.", False),
    ],
)
def test_what_was_interrupted_is_a_field(reason: str, interrupted: bool) -> None:
    result = read(document_of(reason or "none")).cases[0]
    outcomes = [
        *(getattr(result, name) for name in OUTCOMES if name not in ("loads", "processes")),
        *result.loads,
        *result.processes,
    ]
    assert [outcome.interrupted for outcome in outcomes] == [interrupted] * len(OUTCOMES)
    assert due(result, NAMES) == (NAMES if interrupted else [])


@pytest.mark.parametrize(
    ("phase", "message", "tells_phase", "tells_signal"),
    [
        ("measure", "the measured process died with SIGSEGV while measuring", True, True),
        ("measure", "still measuring after 300 s, when its time was over", True, False),
        ("session", "the worker died by SIGSEGV. ", False, True),
        ("session", "", False, False),
    ],
)
def test_what_a_message_tells_is_a_field(
    phase: str, message: str, tells_phase: bool, tells_signal: bool
) -> None:
    document = document_of(INTERRUPTED)
    document["cases"][1]["failure"] |= {"phase": phase, "message": message}
    failure = read(document).cases[1].failure
    assert failure is not None
    assert (failure.tells_phase, failure.tells_signal) == (tells_phase, tells_signal)


@pytest.mark.parametrize(
    ("text", "symbol", "size", "origin", "how"),
    [
        ("N=3 (batch axis)", "N", 3, "batch", "batch axis"),
        ("N=3 (--ort-batch-sizes)", "N", 3, "batch", "--ort-batch-sizes"),
        ("S=7 (--ort-dims)", "S", 7, "dims", "--ort-dims"),
        ("rows=9 (catalogue)", "rows", 9, "catalogue", "catalogue"),
        ("T=8 (the model's default)", "T", 8, "builder", "the model's default"),
        (
            "K=5 (fixed by a consumer in the graph)",
            "K",
            5,
            "graph",
            "fixed by a consumer in the graph",
        ),
        (
            "x=16 (default: nothing says what it is)",
            "x",
            16,
            "default",
            "default: nothing says what it is",
        ),
        ("a = (b)=4 (in x (1).npz)", "a = (b)", 4, "file", "in x (1).npz"),
        ("t=9 (past + new)", "t", 9, "sum", "past + new"),
        ("2*S=-14 (computed)", "2*S", -14, "computed", "computed"),
        ("shape of x.npz", "", 0, "shape", "shape of x.npz"),
        ("x=" + "9" * 30 + " (catalogue)", "", 0, "shape", "x=" + "9" * 30 + " (catalogue)"),
    ],
)
def test_where_a_size_came_from_is_a_field(
    text: str, symbol: str, size: int, origin: str, how: str
) -> None:
    document = document_of(INTERRUPTED)
    document["cases"][0]["case"]["inputs"][0]["resolved"] = [text]
    spec = read(document).cases[0].case.inputs[0]
    assert spec.resolved == (SymbolSize(symbol=symbol, size=size, origin=origin, how=how),)
    assert spec.sizes_text == text


def test_a_plan_of_version_1_goes_on() -> None:
    """An interrupted run is found by this digest of its plan, which version 1 computed."""
    run = read(document_of(INTERRUPTED))
    assert (
        plan_fingerprint([result.case for result in run.cases])
        == "14af1ef447be097aaaf0286cc02d8139"
    )


@pytest.mark.parametrize(
    ("reason", "decided_by", "cause"),
    [
        ("only its absolute limits were held", "", "limits"),
        ("input x: float [1] → float [2]", "floor", "inputs"),
        ("io: end-to-end → device", "typical", "inputs"),
        ("io: end-to-end → device", "", "workload"),
        ("batch: 1 → 8", "", "workload"),
        ("status: measured → crash", "", "status"),
        ("status of the contender: crash: it died → there", "floor", "status"),
        ("machine cpu: A → B", "", "machine"),
        ("machine is shared (virtualisation: x), where times of two runs …", "", "shared"),
        ("canary: ×1.200 of the baseline's, so the machine itself changed", "", "canary"),
        ("its time was over after 5 launches of 8 (--ort-timeout=3)", "floor", "time"),
        ("not one launch fitted into --ort-timeout=3: baseline: late", "floor", "time"),
        ("the regression does not stand among 30 cases", "floor", "suite"),
        (
            "measured again with another seed, it was not slower by the margin",
            "floor",
            "unconfirmed",
        ),
        ("20 launches neither show nor exclude a slowdown of the margin", "floor", "launches"),
        ("a margin of 1 % is below what this machine can resolve now, 2 %", "floor", "margin"),
        (
            "the typical time changed by +5.0 %, the floor time by +0.1 %: they …",
            "floor",
            "statistics",
        ),
        ("no median: n<36", "", "median"),
        ("flagged STEAL", "stored", "flags"),
        ("THROTTLED: for 1 s in 3 s", "floor", "flags"),
        ("the recorded noise of both runs does not allow the margin", "stored", "noise"),
        ("", "floor", ""),
        ("a sentence of nobody", "floor", ""),
    ],
)
def test_why_there_is_no_verdict_is_a_field(reason: str, decided_by: str, cause: str) -> None:
    document = document_of(INTERRUPTED)
    verdict = {"case_id": "c", "runtime": "r", "baseline": "b", "verdict": "inconclusive"}
    document["gate"] = [{**verdict, "reason": reason, "decided_by": decided_by}]
    [judged] = read(document).gate
    assert (judged.cause, judged.reason) == (cause, reason)


@pytest.mark.parametrize(
    ("extra", "cause"),
    [
        ({"removed": True, "verdict": "incomparable"}, "removed"),
        ({"verdict": "slower"}, ""),
        ({"verdict": "less accurate", "latency": "slower"}, ""),
        ({"verdict": "less accurate", "latency": "inconclusive"}, "noise"),
    ],
)
def test_a_verdict_has_no_cause(extra: dict[str, Any], cause: str) -> None:
    document = document_of(INTERRUPTED)
    reason = "the recorded noise of both runs does not allow the margin"
    verdict = {"case_id": "c", "runtime": "r", "baseline": "b", "reason": reason, **extra}
    document["gate"] = [verdict]
    assert read(document).gate[0].cause == cause


@pytest.mark.parametrize("baseline", ["no baseline", "model:no baseline.onnx", ""])
def test_whether_there_was_a_baseline_is_a_field(baseline: str) -> None:
    document = document_of(INTERRUPTED)
    verdict = {"case_id": "c", "runtime": "r", "baseline": baseline, "verdict": "incomparable"}
    document["gate"] = [{**verdict, "failures": ["too large"]}]
    data = json.dumps(document).encode()
    [judged] = decode_run(data, "run.json").gate
    [listed] = decode_head(data, "run.json").gate
    assert judged.has_baseline == listed.has_baseline == (baseline != "no baseline")


def test_a_baseline_of_today_may_be_called_no_baseline() -> None:
    verdict = GateResult(case_id="c", runtime="r", baseline="no baseline", verdict="same")
    data = encode_run(replace(read(document_of(INTERRUPTED)), gate=(verdict,)))
    [judged] = decode_run(data, "run.json").gate
    [listed] = decode_head(data, "run.json").gate
    assert judged.compares
    assert listed.has_baseline


def test_a_migrated_document_is_written_as_one_of_today() -> None:
    run = read(document_of(INTERRUPTED))
    assert decode_run(encode_run(run), "again.json") == run


def test_a_journal_of_version_1_goes_on() -> None:
    document = document_of(INTERRUPTED)
    cases = document.pop("cases")
    lines = [json.dumps(entry).encode() for entry in ({**document, "cases": []}, *cases)]
    run, notes = decode_lines(lines, "journal.jsonl")
    assert notes == ()
    assert due(run.cases[0], NAMES) == NAMES


@pytest.mark.parametrize("value", [None, 3, "text", [], [None, 3, "text"], {"cases": 1}, True])
@pytest.mark.parametrize("name", ["cases", "energy", "loads"])
def test_nonsense_of_version_1_is_told_as_such(name: str, value: object) -> None:
    document = document_of(INTERRUPTED)
    target = document if name == "cases" else document["cases"][0]
    target[name] = value
    faults_in(json.dumps(document).encode(), "run.json")


VERSION_2 = VERSION_1.with_name("v2.json")


def version_2(**facts: Any) -> CaseResult:
    """A case of a document of version 2 with these facts, read."""
    document = json.loads(VERSION_2.read_bytes())
    document["cases"][0] |= facts
    return read(document).cases[0]


@pytest.mark.parametrize(
    ("own", "reference", "stays"), [(0, 0, True), (3, 3, False), (0, 3, False), (3, 0, False)]
)
def test_outputs_with_nan_are_neither_exact_nor_finite(
    own: int, reference: int, stays: bool
) -> None:
    output = {
        "name": "y", "kind": "float", "finite": True, "exact": True, "compared": 8,
        "nonfinite": own, "reference_nonfinite": reference,
    }  # fmt: skip
    trial = {"name": "again", "samples": 1, "outputs": [output]}
    accuracy = {"samples": 8, "outputs": [output], "spread": {"trials": [trial]}}
    found = version_2(accuracy=accuracy).accuracy
    assert found is not None
    assert found.spread is not None
    for read_output in (*found.outputs, *found.spread.trials[0].outputs):
        assert (read_output.finite, read_output.exact) == (stays, stays)
        assert (read_output.nonfinite, read_output.reference_nonfinite) == (own, reference)


@pytest.mark.parametrize("cut_after", [None, 1_000_000])
def test_a_profile_that_broke_off_keeps_no_ratio(cut_after: int | None) -> None:
    counts = {"CPUExecutionProvider": 7}
    placement = {
        "provider": "CPUExecutionProvider", "executed": counts, "shape_only": counts,
        "time_ns": counts, "nodes_on_provider": 7, "nodes_total": 7, "cut_after": cut_after,
    }  # fmt: skip
    found = version_2(placement=placement).placement
    assert found is not None
    if cut_after is None:
        assert (found.executed, found.seen, found.nodes_total) == (counts, {}, 7)
    else:
        assert found.seen == counts
        assert found.executed == found.shape_only == found.time_ns == {}
        assert found.nodes_on_provider is found.nodes_total is None


def test_the_comparison_of_an_export_of_version_3_keeps_its_evidence() -> None:
    """It had other names: what was found wrong then must not read as never compared."""
    document = json.loads((VERSION_1.parent / "v3.json").read_bytes())
    document["cases"][0]["fidelity"] = {"reason": "the source is gone", "parting": None}
    document["cases"][1]["fidelity"] = None
    first, second, *_ = read(document).cases
    assert first.export_check is not None
    assert first.export_check.reason == "the source is gone"
    assert second.export_check is None
