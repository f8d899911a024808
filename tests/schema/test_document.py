from __future__ import annotations

import dataclasses
import json
import math
import re
import typing
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.core.errors import REPORT_IT, DocumentError
from pytest_ortbench.core.outcome import CaseResult, Memory, Samples
from pytest_ortbench.core.run import SCHEMA_VERSION, Machine, Run
from pytest_ortbench.schema.document import (
    decode_lines,
    decode_result,
    decode_run,
    encode_header,
    encode_result,
    encode_run,
    json_schema,
)
from pytest_ortbench.schema.json_schema import describe_type, document_types
from pytest_ortbench.schema.meaning import NonsenseError, faults_of
from pytest_ortbench.schema.migrations import Migrations
from tests.results_factory import make_block
from tests.schema.full_run import CRASHED, MEASURED, RUN

GOLDEN = Path(__file__).parent / "golden"


def values(kind):
    """A strategy for any value that a field annotated with ``kind`` may hold in a document."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(
            kind, **{field.name: values(hints[field.name]) for field in dataclasses.fields(kind)}
        )
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=1).map(tuple)
        return st.tuples(*map(values, arguments))
    if origin is dict:
        return st.dictionaries(st.text(max_size=3), values(arguments[1]), max_size=1)
    if arguments:
        return st.one_of(*map(values, arguments))
    return {
        str: st.text(max_size=4),
        int: st.integers(),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
    }[kind]


def changed(run: Run, **samples) -> Run:
    """``run`` with fields of its first case's samples replaced."""
    first = run.cases[0]
    measurement = first.measurements[0]
    measurement = dataclasses.replace(
        measurement, samples=dataclasses.replace(measurement.samples, **samples)
    )
    first = dataclasses.replace(first, measurements=(measurement,))
    return dataclasses.replace(run, cases=(first, *run.cases[1:]))


# Read what was written.


def test_a_full_run_survives():
    assert decode_run(encode_run(RUN), "x") == RUN


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(values(Samples) | values(Memory), values(CaseResult))
def test_any_result_survives_or_is_refused_on_writing_and_on_reading(part, result):
    if isinstance(part, Samples):
        part = changed(RUN, **{f.name: getattr(part, f.name) for f in dataclasses.fields(part)})
        agrees_about(part, encode_run, decode_run)
    agrees_about(result, encode_result, decode_result)


def agrees_about(value, encode, decode):
    """The writer and the reader refuse the same."""
    if not list(faults_of(value)):
        assert decode(encode(value), "x") == value
        return
    with pytest.raises(DocumentError, match="written"):
        encode(value)
    plain = json.dumps(msgspec.to_builtins(value)).encode()
    with pytest.raises(NonsenseError) as caught:
        decode(plain, "x")
    assert [str(fault) for fault in caught.value.faults] == [str(f) for f in faults_of(value)]


def test_the_document_is_one_object_with_a_final_newline_and_durations_on_one_line():
    kept = tuple(range(1_000_000, 1_003_000))
    samples = reduce_blocks([make_block(kept)], keep=3000, clock_pair_ns=100)
    fields = {field.name: getattr(samples, field.name) for field in dataclasses.fields(samples)}
    data = encode_run(changed(RUN, **fields))
    text = data.decode()
    assert text.endswith("}\n")
    assert json.loads(text)["schema_version"] == SCHEMA_VERSION
    start = '"durations_ns": [1000000, 1000001,'
    [line] = [line for line in text.splitlines() if line.strip().startswith(start)]
    assert line.count(",") == 3000


def test_fields_that_a_later_release_adds_are_ignored():
    document = json.loads(encode_run(RUN))
    document["weather"] = "fine"
    document["cases"][0]["case"]["model"]["colour"] = {"deep": [1]}
    assert decode_run(json.dumps(document).encode(), "x") == RUN


def test_a_byte_order_mark_does_not_matter():
    assert decode_run(b"\xef\xbb\xbf" + encode_run(RUN), "x") == RUN


# The golden documents: once released, never edited again.


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("v*.json")), ids=lambda path: path.stem)
def test_golden_documents_are_read_for_ever(path):
    run = decode_run(path.read_bytes(), str(path))
    assert run == RUN
    assert run.schema_version == SCHEMA_VERSION


def test_the_golden_document_of_this_version_fits_the_schema():
    document = json.loads((GOLDEN / f"v{SCHEMA_VERSION}.json").read_bytes())
    jsonschema.Draft202012Validator(json_schema()).validate(document)


# The JSON Schema.


def test_the_schema_is_itself_valid_and_describes_every_field():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    properties = schema["$defs"]["Samples"]["properties"]
    assert properties["stride"]["description"] == (
        "How many `durations_ns` holds one of, rounded up; 1 if it holds all."
    )
    assert schema["$defs"]["Case"]["properties"]["model"] == {
        "$ref": "#/$defs/Model",
        "description": "The model as the user named it.",
    }


@pytest.mark.parametrize("kind", document_types(), ids=lambda kind: kind.__name__)
def test_docstrings_name_only_fields_that_exist(kind):
    known = {field.name for field in dataclasses.fields(kind)}
    described = describe_type(kind)
    assert set(described.fields) <= known
    assert described.summary


def test_all_types_of_the_document_are_listed_once():
    names = [kind.__name__ for kind in document_types()]
    assert names[0] == "Run"
    assert sorted(names) == sorted(json_schema()["$defs"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cases", 0, "status"), "quick"),
        (("schema_version",), SCHEMA_VERSION + 1),
        (("cases", 1, "failure", "kind"), "bad luck"),
        (("machine", "host"), 5),
    ],
)
def test_the_schema_refuses_what_no_document_may_hold(path, value):
    document = json.loads(encode_run(RUN))
    target = document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(document)


# What is refused when writing.


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nonfinite_numbers_are_refused_with_their_place(value):
    with pytest.raises(DocumentError) as error:
        encode_run(changed(RUN, steal_ratio=value))
    assert error.value.place == f"run {RUN.run_id}"
    assert "$.cases[0].measurements[0].samples.steal_ratio" in error.value.message
    assert error.value.hint == REPORT_IT


def test_nonfinite_numbers_are_refused_in_a_journal_line_too():
    with pytest.raises(DocumentError, match=r"\$\.wall_s is NaN") as error:
        encode_result(dataclasses.replace(CRASHED, wall_s=math.nan))
    assert error.value.place.split() == ["case", "tagger/native/cpu/b1"]


@pytest.mark.parametrize("value", [5, None, object(), [1]])
def test_values_of_a_wrong_type_are_refused_instead_of_written_unreadably(value):
    machine = Machine(host="h", stable={"cores": value})
    with pytest.raises(DocumentError, match=r"\$\.machine\.stable\.cores") as error:
        encode_run(dataclasses.replace(RUN, machine=machine))
    assert "pytest_ortbench_machine_info" in error.value.hint


def test_half_characters_of_a_file_name_do_not_stop_the_writing():
    run = dataclasses.replace(RUN, command=("pytest", "mod\udce9le.onnx"))
    assert decode_run(encode_run(run), "x").command == ("pytest", "mod\\udce9le.onnx")


# What is refused when reading: one line each, with the place and the next step.

WHOLE = encode_run(RUN)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty. If the file was copied, copy it again"),
        (b" \n\t", "the file is empty"),
        (WHOLE[:5000], "cut off after 5000 bytes. If the file was copied, copy it again"),
        (WHOLE[:-3], f"cut off after {len(WHOLE) - 3} bytes"),
        (b"hello", "as JSON (msgspec says: 'invalid character (byte 0)'). Name a run.json"),
        (b"PK\x03\x04", "can't be read as JSON"),
        (b'{"run_id": "\xff"}', "byte 12 (0xff) is not UTF-8"),
        (b'{"expected": NaN}', "can't be read as JSON"),
        (b'{"expected": 1e999}', "as JSON (msgspec says: 'Number out of range"),
        (WHOLE + WHOLE, "trailing characters (byte "),
        (WHOLE + WHOLE, "was changed by hand"),
        (b"[" * 100_000, "too deeply"),
        (b"[1, 2]", "is not a run document, since its top level is an array, not an object"),
        (b"null", "its top level is null"),
        (b"3", "its top level is a number"),
        (b'"x"', "its top level is a string"),
        (b"{}", "since its key 'schema_version' is missing"),
        (b'{"schema_version": 2}', "since its key 'run_id' is missing"),
        (b'{"machine_info": {}, "benchmarks": []}', "the file was written by pytest-benchmark"),
        (b'{"schema_version": "1", "run_id": "r"}', "schema_version is '1', not a whole number"),
        (b'{"schema_version": true, "run_id": "r"}', "schema_version is True, not a whole number"),
        (
            b'{"schema_version": 99, "run_id": "r"}',
            "the document has schema version 99, but this pytest-ortbench reads versions up to "
            f"{SCHEMA_VERSION}. Run: pip install".encode(),
        ),
        (
            b'{"schema_version": 0, "run_id": "r"}',
            "schema version 0",
        ),
        (
            b'{"schema_version": 1, "run_id": "r"}',
            "is missing",
        ),
        (
            WHOLE.replace(b'"host": "lab-1"', b'"host": 5'),
            "$.machine.host is 5, but must be text",
        ),
        (
            WHOLE.replace(b'"count": 6', b'"count": "6"'),
            "$.cases[0].measurements[0].samples.count is '6', but must be a whole number",
        ),
    ],
)
def test_bad_documents_get_one_line(data, message):
    with pytest.raises(DocumentError) as error:
        decode_run(data, "results/a/run.json")
    text = str(error.value)
    assert text.startswith("results/a/run.json: ")
    assert (message if isinstance(message, str) else message.decode()) in text
    assert "\n" not in text


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WHOLE) - 2))
def test_a_document_cut_anywhere_is_a_document_error(length):
    with pytest.raises(DocumentError):
        decode_run(WHOLE[:length], "x")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_garbage_is_a_document_error(data):
    with pytest.raises(DocumentError):
        decode_run(data, "x")


# Older versions.


def older() -> bytes:
    """A document of an invented version, two before the present, whose cases were results."""
    document = json.loads(WHOLE)
    document["schema_version"] = SCHEMA_VERSION - 2
    document["results"] = document.pop("cases")
    return json.dumps(document).encode()


def rename_results(document):
    document["cases"] = document.pop("results")
    return document


def note_the_host(document):
    assert document["schema_version"] == SCHEMA_VERSION - 1, (
        "steps see the version that they migrate from"
    )
    document["machine"]["volatile"]["migrated"] = "yes"
    return document


STEPS = Migrations(
    target=SCHEMA_VERSION,
    steps={SCHEMA_VERSION - 2: rename_results, SCHEMA_VERSION - 1: note_the_host},
)


def test_older_documents_go_through_every_step_in_order():
    run = decode_run(older(), "x", migrations=STEPS)
    assert run.schema_version == SCHEMA_VERSION
    assert run.cases == RUN.cases
    assert run.machine.volatile["migrated"] == "yes"


def test_documents_of_the_present_version_take_no_step():
    assert decode_run(WHOLE, "x", migrations=STEPS) == RUN


def test_older_versions_than_the_oldest_are_refused():
    document = json.loads(older())
    document["schema_version"] -= 1
    data = json.dumps(document).encode()
    with pytest.raises(DocumentError, match=rf" first version is {SCHEMA_VERSION - 2}\b") as error:
        decode_run(data, "x", migrations=STEPS)
    assert error.value.place == "x"


# The lines of a journal.


def lines(*parts: bytes) -> list[bytes]:
    return b"".join(parts).split(b"\n")


def test_a_journal_gives_the_run_so_far():
    data = lines(encode_header(RUN), encode_result(MEASURED), encode_result(CRASHED))
    assert decode_lines(data, "journal.jsonl") == (RUN, ())


def test_every_entry_is_one_line():
    for data in (encode_header(RUN), encode_result(MEASURED)):
        assert data.endswith(b"}\n")
        assert data.count(b"\n") == 1


def test_a_torn_last_line_is_left_out_and_noted():
    torn = encode_result(CRASHED)[:200]
    run, notes = decode_lines(
        lines(encode_header(RUN), encode_result(MEASURED), torn), "journal.jsonl"
    )
    assert run.cases == (MEASURED,)
    assert len(notes) == 1
    assert re.findall(r"\d+", notes[0]) == ["3", "200"]


def test_a_torn_line_in_the_middle_costs_only_itself():
    torn = encode_result(CRASHED)[:200] + b"\n"
    run, notes = decode_lines(lines(encode_header(RUN), torn, encode_result(MEASURED)), "j")
    assert run.cases == (MEASURED,)
    assert len(notes) == 1


def test_later_lines_replace_earlier_ones_of_the_same_case():
    again = dataclasses.replace(MEASURED, wall_s=1.25)
    run, _ = decode_lines(
        lines(
            encode_header(RUN),
            encode_result(MEASURED),
            encode_result(CRASHED),
            encode_result(again),
        ),
        "j",
    )
    assert run.cases == (again, CRASHED)


def test_later_headers_replace_earlier_ones():
    first = dataclasses.replace(RUN, canary=None)
    run, _ = decode_lines(
        lines(encode_header(first), encode_result(MEASURED), encode_header(RUN)), "j"
    )
    assert run.canary == RUN.canary
    assert run.cases == (MEASURED,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "j: the journal is empty"),
        (b"\n\n", "j: the journal is empty"),
        (b'{"schema_ver', "j, line 1: the line is cut off after 12 bytes"),
        (b'{"schema_version": 9, "run_id": "r"}', "j: the document has schema version 9"),
    ],
)
def test_a_journal_without_a_header_is_a_document_error(data, message):
    with pytest.raises(DocumentError) as error:
        decode_lines(data.split(b"\n"), "j")
    assert message in str(error.value)


def test_an_older_journal_is_migrated():
    header = json.loads(encode_header(RUN))
    header["schema_version"] = SCHEMA_VERSION - 1
    run, _ = decode_lines(
        [json.dumps(header).encode(), encode_result(MEASURED)],
        "j",
        migrations=STEPS,
    )
    assert run.machine.volatile["migrated"] == "yes"
    assert run.cases == (MEASURED,)
