"""Secrets of the configuration reach no document and no page."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.secrets import MASK, masked, masked_text, without_places
from pytest_ortbench.schema.document import decode_run, encode_result, encode_run
from pytest_ortbench.store.resume import taken_over
from tests.drawn_messages import messages
from tests.results_factory import make_result, make_run

_SECRET = "s3cr3t-0815"
_RUNTIME = Runtime(
    label="lab",
    command=("docker", "run", "-e", f"HF_TOKEN={_SECRET}", "--password", _SECRET, "python"),
    environment={"HF_TOKEN": _SECRET, "OMP_NUM_THREADS": "2"},
)


#: What must not be seen of any.
_SECRETS = (_SECRET, _SECRET.replace("-", "") * 3, "A1" * 20, "aB3" * 12, "ABCD" * 4, "x1" * 10,
            "12" * 10, "eyJzdWIi", "abc-_def")  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"onnxruntime @ https://user:{_SECRET}@host/simple/x.whl",
        f"https://{_SECRET}@host/x",
        f"--token={_SECRET}",
        f"GITHUB_TOKEN={_SECRET} pytest",
        f"https://host/x?access_token={_SECRET}&a=1",
        f"https://u:{_SECRET}@x@host/y",
        f"https://host/x?a=1&sig={_SECRET}",
        f"https://host/x?X-Amz-Signature={_SECRET}",
        f"PGPASSWORD={_SECRET}",
        f"DB_PASS={_SECRET} DB_USER=ann",
        f"clientSecret={_SECRET}",
        f"AccountKey={_SECRET};EndpointSuffix=core",
        f"AWS_SECRET_ACCESS_KEY={_SECRET}",
        f'password="{_SECRET} with spaces {_SECRET}"',
        f"--api-key='{_SECRET}'",
        f'{{"user": "ann", "password": "{_SECRET}"}}',
        f"{{'auth-token': '{_SECRET}'}}",
        f"Authorization: Bearer {_SECRET}",
        f"curl -H 'authorization: token {_SECRET}' https://host",
        f"X-Api-Key: {_SECRET}",
        f"PRIVATE-TOKEN: {_SECRET}",
        f"Cookie: session={_SECRET}; a=1",
        f"bearer {_SECRET}",
        "ghp_" + _SECRET.replace("-", "") * 3,
        "pip install git+https://github_pat_" + "A1" * 20 + "@github.com/x/y",
        "hf_" + "aB3" * 12,
        "AKIA" + "ABCD" * 4,
        "glpat-" + "x1" * 10,
        "xoxb-" + "12" * 10,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_def",
        f"-----BEGIN RSA PRIVATE KEY-----\n{_SECRET}\n{_SECRET}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{_SECRET}",
    ],
)
def test_what_marks_a_secret_masks_it(text: str) -> None:
    shown = masked_text(text)
    assert MASK in shown
    assert not [part for part in _SECRETS if part in shown]


@pytest.mark.parametrize(
    "text",
    [
        "seq:128",
        "tokens=5",
        "author=me",
        "x@y",
        "a=b",
        "https://host/a",
        "tokenizer=b.json",
        "token:128",
        "PWD=/home/ann",
        "passes=3",
        "bypass=1",
        "max_tokens=7",
        "basic, extended",
        "--ort-graph-opts=basic",
        "hf_model_of_some_encoder_with_long_name",
        "sk-learn-forest-v2",
        "https://host/x?a=b@c",
        "tokens per second: 12",
        "keys: a, b",
        "compass=north",
        "m/native/cpu/b1/seq:16/token:4",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b",
        "Known: latency_p50, latency_p90",
        "session.use_env_allocators=1",
        "secretary: Ann",
        "m/threads:4/graph-opt:basic    native/cpu/threads:4",
        "graph-opt:basic\nrec_with_a_long_name",
        "basic optimisations",
        "input  cls_token: tensor(float) [batch, 5]",
        "n_token=128 (default: sequence length)",
        "cls_token: SQNR 35.2 dB",
        "input  session_id_token: tensor(int64) [batch]",
        "n_token: default: sequence length",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert masked_text(text) == text


def test_no_message_of_ours_looks_like_a_secret() -> None:
    """Columns and steps of workflows are shown unmasked; what stands for a case is masked."""
    shown_as_they_are = ("cli/", "passes/generation/declaration.py", "passes/generation/report.py")
    masked_messages = [
        place
        for place, text in messages()
        if masked_text(text) != text and not place.startswith(shown_as_they_are)
    ]
    assert masked_messages == []


@pytest.mark.parametrize(
    "text", ["token_" * 200_000, "x" * 10**6, "'a" * 400_000, "token: " * 150_000, "://@" * 250_000]
)
def test_a_long_text_takes_no_long_time(text: str) -> None:
    began = time.process_time()
    masked_text(text)
    assert time.process_time() - began < 5


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
