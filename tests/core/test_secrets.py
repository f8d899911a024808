"""Secrets of the configuration reach no document and no page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.secrets import MASK, masked, masked_text, without_places
from pytest_ortbench.schema.document import decode_run, encode_result, encode_run
from pytest_ortbench.store.resume import taken_over
from tests.results_factory import make_result, make_run

_SECRET = "s3cr3t-0815"
_RUNTIME = Runtime(
    label="lab",
    command=("docker", "run", "-e", f"HF_TOKEN={_SECRET}", "--password", _SECRET, "python"),
    environment={"HF_TOKEN": _SECRET, "OMP_NUM_THREADS": "2"},
)


@pytest.mark.parametrize(
    "text",
    [
        f"onnxruntime @ https://user:{_SECRET}@host/simple/x.whl",
        f"https://{_SECRET}@host/x",
        f"--token={_SECRET}",
        f"GITHUB_TOKEN={_SECRET} pytest",
        f"https://host/x?access_token={_SECRET}&a=1",
    ],
)
def test_what_marks_a_secret_masks_it(text: str) -> None:
    assert _SECRET not in masked_text(text)
    assert MASK in masked_text(text)


@pytest.mark.parametrize(
    "text", ["seq:128", "tokens=5", "author=me", "x@y", "a=b", "https://host/a", "tokenizer=b.json"]
)
def test_other_texts_stay(text: str) -> None:
    assert masked_text(text) is text or masked_text(text) == text


def test_no_document_and_no_journal_holds_a_secret() -> None:
    result = make_result()
    case = replace(result.case, runtime=_RUNTIME)
    run = replace(
        make_run([replace(result, case=case)]),
        command=("pytest", f"--ort-runtimes=https://u:{_SECRET}@host/x.whl"),
        options={"--ort-runtimes": f"https://u:{_SECRET}@host/x.whl"},
    )
    stored = encode_run(run)
    assert _SECRET.encode() not in stored + encode_result(run.cases[0])
    (read,) = decode_run(stored, "run.json").cases
    assert read.case.runtime.environment == {"HF_TOKEN": MASK, "OMP_NUM_THREADS": "2"}
    taken = taken_over(read, case)
    assert taken is not None
    assert taken.case.runtime == _RUNTIME


def test_what_holds_no_secret_is_the_same_object() -> None:
    run = make_run()
    assert masked(run) is run


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/ann/work/m.onnx", "…/m.onnx"),
        ("--ort-inputs=/home/ann/photos/cats", "--ort-inputs=…/cats"),
        ("C:\\Users\\ann\\m.onnx", "…/m.onnx"),
        ("lab-7 is busy", "host is busy"),
        ("20260102T030405Z-lab-7-0a1b", "20260102T030405Z-host-0a1b"),
        ("items/s", "items/s"),
        ("m/native/cpu/b1", "m/native/cpu/b1"),
        ("https://host.org/a/b", "https://host.org/a/b"),
    ],
)
def test_hosts_and_folders_are_left_out(text: str, left: str) -> None:
    assert without_places(text, "lab-7") == left


def test_a_redacted_document_is_one_and_names_nobody() -> None:
    run = make_run()
    shared = encode_run(without_places(run, run.machine.host))
    assert run.machine.host.encode() not in shared
    assert len(decode_run(shared, "run.json").cases) == len(run.cases)
