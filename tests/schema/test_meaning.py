"""Documents that fit the types and can't be true: each value is named with its rule."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from pytest_ortbench.schema.bound_kinds import Numbers, Words
from pytest_ortbench.schema.bounds import BOUNDS, bound_of
from pytest_ortbench.schema.document import (
    decode_lines,
    decode_run,
    encode_header,
    encode_run,
    faults_in,
    json_schema,
)
from pytest_ortbench.schema.json_schema import document_types
from pytest_ortbench.schema.meaning import NonsenseError, faults_of
from pytest_ortbench.schema.relations import RELATIONS
from tests.mutations.bases import everything
from tests.results_factory import make_engine_result, make_result, make_run
from tests.schema.full_run import RUN

EXAMPLES = Path(__file__).parents[2] / "results" / "example"
PLAIN = json.loads(encode_run(everything()))

_FIRST = "cases.0.measurements.0"
_SAMPLES = f"{_FIRST}.samples"
_TURNS = f"{_FIRST}.yardstick"


def _put(document: Any, path: str, value: object) -> None:
    *above, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in above:
        document = document[step]
    document[last] = value


def _changed(changes: dict[str, object]) -> bytes:
    document = copy.deepcopy(PLAIN)
    for path, value in changes.items():
        _put(document, path, value)
    return json.dumps(document).encode()


def _said(path: str) -> str:
    steps = [f"[{step}]" if step.isdigit() else f".{step}" for step in path.split(".")]
    return "$" + "".join(steps)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_real_documents_make_sense(path: Path) -> None:
    assert faults_in(path.read_bytes(), str(path)) == []


def test_built_documents_make_sense() -> None:
    for run in (RUN, everything(), make_run()):
        assert list(faults_of(run)) == []


#: Values of the right type that can't be, each with its place.
NONSENSE: list[tuple[str, object]] = [
        (f"{_SAMPLES}.sum_ns", -1),
        (f"{_SAMPLES}.sum_ns", 1),
        (f"{_SAMPLES}.count", -5),
        (f"{_SAMPLES}.count", 0),
        (f"{_SAMPLES}.count", 7),
        (f"{_SAMPLES}.count", 2**63 - 1),
        (f"{_SAMPLES}.count", 2**63),
        (f"{_SAMPLES}.stride", 2),
        (f"{_SAMPLES}.durations_ns", []),
        (f"{_SAMPLES}.min_ns", 10**12),
        (f"{_SAMPLES}.sum_of_squares_s2", 1e-30),
        (f"{_SAMPLES}.sum_of_squares_s2", 1e3),
        (f"{_SAMPLES}.order_statistics", []),
        (f"{_SAMPLES}.order_statistics.0.percent", 37.5),
        (f"{_SAMPLES}.order_statistics.0.value_ns", -4),
        (f"{_SAMPLES}.order_statistics.0.low_ns", 10**12),
        (f"{_SAMPLES}.order_statistics.0.high_ns", 1),
        (f"{_SAMPLES}.steal_ratio", 1.5),
        (f"{_SAMPLES}.thirds_ns", [-1, 5, 2**63]),
        (f"{_SAMPLES}.starved_blocks", 10**6),
        (f"{_SAMPLES}.wall_ns", 2**54),
        (f"{_TURNS}.absence", "off"),
        (f"{_TURNS}.absence", "lunch"),
        (f"{_TURNS}.yardstick", None),
        (f"{_TURNS}.yardstick.name", "metre"),
        (f"{_TURNS}.rounds", 2),
        (f"{_TURNS}.model_mean_ns", [1_000_000]),
        (f"{_TURNS}.model_low_ns", [1_000_000, 0, 1]),
        (f"{_TURNS}.yardstick_low_ns", [500_000, 600_000, 1]),
        (f"{_TURNS}.yardstick_mean_ns", [1, -1, 1]),
        (f"{_TURNS}.memory_mean_ns", [100]),
        (f"{_TURNS}.memory_mean_ns", [100, 100, 2**40]),
        (f"{_TURNS}.memory_low_ns", [100, 100, 100]),
        (f"{_TURNS}.handover_ns", [350]),
        (f"{_TURNS}.handover_ns", [350, 0, None]),
        (f"{_TURNS}.model_cpus", -0.5),
        (f"{_TURNS}.best_ns", 2**54),
        (f"{_FIRST}.memory.process_peak_bytes", -1),
        (f"{_FIRST}.warm_up.total_ns", -3),
        (f"{_FIRST}.startup.import_ns", -3),
        ("cases.0.status", "fine"),
        ("cases.0.status", "crash"),
        ("cases.0.measurements", []),
        ("cases.3.failure", None),
        ("cases.3.failure.kind", "timeout"),
        ("cases.3.failure.phase", "lunch"),
        ("cases.0.wall_s", -1.0),
        ("cases.0.case.model.parameters", 2**63),
        ("cases.0.case.model.size_bytes", -1),
        ("cases.0.case.model.name", "n" * 5000),
        ("cases.0.case.batch", -1),
        ("cases.0.placement.executed", {"CPUExecutionProvider": -1}),
        ("cases.0.placement.nodes_on_provider", 10**6),
        ("cases.0.accuracy.outputs.0.cosine", 7.0),
        ("cases.0.accuracy.outputs.0.agree", 9),
        ("cases.0.accuracy.outputs.0.nonfinite", 3),
        ("cases.0.accuracy.outputs.0.reference_nonfinite", 3),
        ("cases.0.placement.seen", {"CPUExecutionProvider": 1}),
        ("cases.0.placement.cut_after", 1_000_000),
        ("cases.0.energy.windows.0.duration_ns", 0),
        ("cases.0.energy.windows.0.energy_j", -1.0),
        ("cases.0.profile.run_ns", 2**63 - 1),
        ("cases.0.profile.operators.0.macs", -1),
        ("cases.0.soak.resident_bytes", [1]),
        ("cases.0.loads.0.answer", 1),
        ("cases.0.loads.0.spec.percent", 101.0),
        ("cases.0.loads.0.tests.0.percentiles_ns", {"most": 1}),
        ("cases.0.processes.1.asked", 1),
        ("cases.0.processes.1.processes", []),
        ("cases.0.processes.0.processes.0.samples.wall_ns", 0),
        ("cases.0.case.variant.size_bytes", 0),
        ("cases.0.task.score_sum", -1e308),
        ("gate.0.model_relation", "cousins"),
        ("cases.0.start_ups.trials.0.resident", 2.0),
        ("cases.0.task.better", 101),
        ("cases.0.task.reference_sum", None),
        ("cases.1", PLAIN["cases"][0]),
        ("gate.0.verdict", "fast"),
        ("gate.0.contrasts.0.p", 1.1),
        ("gate.0.contrasts.0.low", 0.2),
        ("canary.durations_ns", [0]),
        ("started_at", "yesterday"),
        ("resumed", 9),
        ("expected", -1),
]  # fmt: skip


#: A provider, an engine that compiles ahead, and a framework that builds its model.
ROLES = json.loads(
    encode_run(
        make_run(
            [
                make_result(),
                make_engine_result(alias="openvino-native", title="OpenVINO"),
                make_engine_result(
                    alias="torch",
                    title="PyTorch",
                    role="framework",
                    startup={"build_ns": 5},
                    compile_ns=None,
                    compiled_bytes=None,
                ),
            ]
        )
    )
)
_STARTUP = "measurements.0.startup"


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("cases.0.case.provider.role", "backend", "'engine'"),
        ("cases.0.case.provider.role", "", "'engine'"),
        ("cases.1.case.provider.role", "Engine", "'engine'"),
        (f"cases.0.{_STARTUP}.cache", "hot", "'warm'"),
        (f"cases.1.{_STARTUP}.cache", "", "'warm'"),
        ("cases.1.measurements.0.runtime.engine", "openvino", "'openvino-native'"),
        ("cases.2.measurements.2.runtime.engine", "torch-compile", "'torch'"),
        ("cases.1.measurements.2.runtime.version", "1.32.0", "must be empty"),
        ("cases.0.measurements.0.runtime.engine_version", "2.13.0", "must be empty"),
        ("runtimes.current.engine_version", "2.13.0", "must be empty"),
        ("cases.1.placement", PLAIN["cases"][0]["placement"], "must be null"),
        (f"cases.0.{_STARTUP}.build_ns", 0, "must be null"),
        (f"cases.0.{_STARTUP}.compile_ns", 7, "must be null"),
        (f"cases.2.{_STARTUP}.compiled_bytes", 0, "must be null"),
    ],
)
def test_what_ran_and_what_it_says_of_itself_must_agree(
    path: str, value: object, rule: str
) -> None:
    document = copy.deepcopy(ROLES)
    _put(document, path, value)
    with pytest.raises(NonsenseError) as caught:
        decode_run(json.dumps(document).encode(), "run.json")
    assert (caught.value.place, bool(caught.value.hint)) == ("run.json", True)
    [fault] = caught.value.faults
    assert fault.path == _said(path)
    if isinstance(value, str | int):
        assert fault.value == repr(value)
    assert rule in fault.rule


def test_the_size_of_what_was_never_compiled_and_an_engine_that_became_a_provider() -> None:
    for path, value, place in (
        (f"cases.1.{_STARTUP}.compile_ns", None, f"cases.1.{_STARTUP}.compiled_bytes"),
        (
            "cases.0.measurements.1.runtime.engine",
            "tract",
            "cases.0.measurements.1.runtime.version",
        ),
        (
            "cases.1.measurements.1.runtime.engine",
            "",
            "cases.1.measurements.1.runtime.engine_version",
        ),
        ("cases.1.case.provider.role", "provider", "cases.1.measurements.0.runtime.engine"),
        ("cases.0.case.provider.role", "engine", "cases.0.measurements.0.runtime.engine"),
        ("cases.2.case.provider.alias", "tensorflow", "cases.2.measurements.0.runtime.engine"),
    ):
        document = copy.deepcopy(ROLES)
        _put(document, path, value)
        with pytest.raises(NonsenseError) as caught:
            decode_run(json.dumps(document).encode(), "run.json")
        assert caught.value.faults[0].path == _said(place)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("cases.1.measurements.0.runtime.engine_version", ""),
        (f"cases.1.{_STARTUP}.cache", "warm"),
        (f"cases.1.{_STARTUP}.compiled_bytes", None),
        (f"cases.1.{_STARTUP}.compile_ns", 0),
        (f"cases.1.{_STARTUP}.build_ns", 3),
        (f"cases.2.{_STARTUP}.build_ns", None),
        (f"cases.2.{_STARTUP}.compile_ns", 3),
        ("cases.0.placement", None),
        ("cases.0.measurements.0.runtime.version", ""),
    ],
)
def test_what_may_differ_between_engines_is_read(path: str, value: object) -> None:
    document = copy.deepcopy(ROLES)
    _put(document, path, value)
    assert len(decode_run(json.dumps(document).encode(), "run.json").cases) == 3


def test_documents_of_before_there_were_engines_are_read() -> None:
    document = copy.deepcopy(ROLES)
    for case in document["cases"][1:]:
        del case["case"]["provider"]["role"]
        for measurement in case["measurements"]:
            for field in ("engine", "engine_version"):
                del measurement["runtime"][field]
            for field in ("build_ns", "compile_ns", "compiled_bytes"):
                del measurement["startup"][field]
    assert {result.case.provider.role for result in decode_run(
        json.dumps(document).encode(), "run.json").cases} == {"provider"}  # fmt: skip


@pytest.mark.parametrize(("path", "value"), NONSENSE)
def test_what_can_not_be_is_refused_with_its_place(path: str, value: object) -> None:
    data = _changed({path: value})
    with pytest.raises(NonsenseError) as caught:
        decode_run(data, "run.json")
    assert caught.value.place == "run.json"
    field = _said(path)
    holder = field.rpartition(".")[0]
    assert any(
        fault.path.startswith(holder or "$") or field.startswith(fault.path)
        for fault in caught.value.faults
    )
    assert all(fault.rule.startswith("must") or "no percentile" in fault.rule
               for fault in caught.value.faults)  # fmt: skip
    assert caught.value.faults[0].path in caught.value.message
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_the_json_schema_has_nothing_against_their_types() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    remaining = [entry for entry in NONSENSE if not isinstance(entry[1], str)]
    while remaining:
        # As many as can stand beside each other, since a look at a whole document takes its time.
        changes: dict[str, object] = {}
        for path, value in remaining:
            if not any(path.startswith(other) or other.startswith(path) for other in changes):
                changes[path] = value
        assert list(validator.iter_errors(json.loads(_changed(changes)))) == []
        remaining = [entry for entry in remaining if changes.get(entry[0]) is not entry[1]]


def test_every_fault_is_named_and_the_first_stands_in_the_message() -> None:
    changes = {f"{_SAMPLES}.sum_ns": -1, "cases.1.wall_s": -2.0, "gate.0.wall_s": -3.0}
    with pytest.raises(NonsenseError) as caught:
        decode_run(_changed(changes), "run.json")
    assert [fault.path for fault in caught.value.faults] == [_said(path) for path in changes]
    assert _said(f"{_SAMPLES}.sum_ns") in caught.value.message
    assert "3" in caught.value.hint
    assert "ortbench schema run.json" in caught.value.hint


def test_wrong_types_are_all_named_before_the_sense_is_looked_at() -> None:
    document = copy.deepcopy(PLAIN)
    document["cases"][0]["wall_s"] = "long"
    document["cases"][0]["measurements"][0]["samples"]["thirds_ns"] = [1, 2]
    document["gate"][0]["flags"] = {}
    document["machine"]["stable"]["cpu"] = 3
    document["expected"] = -1
    del document["cases"][1]["case"]["model"]["digest"]
    found = faults_in(json.dumps(document).encode(), "run.json")
    assert [fault.path for fault in found] == [
        "$.machine.stable.cpu",
        "$.cases[0].measurements[0].samples.thirds_ns",
        "$.cases[0].wall_s",
        "$.cases[1].case.model.digest",
        "$.gate[0].flags",
    ]


def test_a_journal_that_makes_no_sense_is_refused_and_a_torn_line_is_not() -> None:
    run = everything()
    lines = [encode_header(run).rstrip()]
    lines += [msgspec.json.encode(result) for result in run.cases]
    read, notes = decode_lines([*lines, lines[1][:500]], "journal.jsonl")
    assert (len(read.cases), len(notes)) == (4, 1)
    broken = json.loads(lines[1])
    broken["measurements"][0]["samples"]["sum_ns"] = -1
    with pytest.raises(NonsenseError, match=r"sum_ns is -1"):
        decode_lines([*lines[:1], json.dumps(broken).encode()], "journal.jsonl")


def test_numbers_that_no_reader_takes_are_refused() -> None:
    text = _changed({f"{_SAMPLES}.sum_ns": 123_456_789_101}).decode()
    for token in ("NaN", "Infinity", "1e999", "1" * 5000, "1e308", "-0"):
        with pytest.raises(Exception, match=r"run\.json: ") as caught:
            decode_run(text.replace("123456789101", token).encode(), "run.json")
        assert type(caught.value).__name__ in ("DocumentError", "NonsenseError")


# The tables.


def test_bounds_are_of_fields_that_exist() -> None:
    kinds = document_types()
    for kind, field in BOUNDS:
        assert kind in kinds
        assert field in {part.name for part in dataclasses.fields(kind)}
    assert set(RELATIONS) <= set(kinds)


def test_numbers_follow_their_unit() -> None:
    kinds = {kind.__name__: kind for kind in document_types()}
    assert bound_of(kinds["Samples"], "wall_ns", int) == Numbers(0, 2**53)
    assert bound_of(kinds["Memory"], "process_peak_bytes", int) == Numbers(0, 2**60)
    assert bound_of(kinds["Memory"], "peak_bytes", int) == Numbers(-(2**60), 2**60)
    assert bound_of(kinds["Peak"], "macs_per_s", float) == Numbers(0, 1e18)
    assert bound_of(kinds["Model"], "nodes", int) == Numbers(0, 2**63 - 1)
    assert isinstance(bound_of(kinds["CaseResult"], "status", str), Words)


def test_a_worker_without_a_yardstick_says_why() -> None:
    document = copy.deepcopy(PLAIN)
    _put(document, _TURNS, {"absence": "short"})
    turns = decode_run(json.dumps(document).encode(), "run.json").cases[0].measurements[0].yardstick
    assert turns is not None
    assert (turns.absence, turns.yardstick, turns.rounds) == ("short", None, 0)
