"""Certificates of self-checks: kept whole, read with care, and shown only where they speak."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount, Certificate, CheckLine
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.outcome import CaseResult, RuntimeInfo
from pytest_ortbench.core.run import Machine, Run
from pytest_ortbench.schema.document import decode_run, encode_run
from pytest_ortbench.store import certificates
from pytest_ortbench.store.certificates import certified, keep_certificate, stored_certificates
from pytest_ortbench.store.merge import merge_runs
from tests.results_factory import make_case, make_result, make_run

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
CUDA = Provider(alias="cuda", name="CUDAExecutionProvider")

LINE = CheckLine(
    check="loop",
    about="our loop against a bare one",
    verdict="pass",
    cause="agrees",
    reason="both take as long",
    amounts=(Amount(name="ratio", value=1.0, low=0.99, high=1.01),),
)


def info_of(result: CaseResult) -> RuntimeInfo:
    return result.measurements[0].runtime


def run_of(*results: CaseResult) -> Run:
    return replace(make_run(results), machine=Machine(host="here", stable={"cpu": "A"}))


def fitting(run: Run, provider: Provider = CPU) -> Certificate:
    """Return a certificate that speaks for the first case of a run."""
    result = run.cases[0]
    info = info_of(result)
    return Certificate(
        provider=provider.label,
        provider_name=provider.name,
        runtime="another-label",
        runtime_version=info.version,
        distributions=info.distributions,
        ortbench_version=run.ortbench_version,
        made_at="2026-11-29T20:00:00+00:00",
        machine=run.machine.stable,
        host="" if info.host in ("", run.machine.host) else info.host,
        devices=info.devices,
        lines=(LINE,),
    )


@pytest.fixture
def run() -> Run:
    return run_of(make_result(case=make_case(provider="cpu")))


def test_what_is_kept_is_read_again(tmp_path: Path, run: Run) -> None:
    certificate = fitting(run)
    path = keep_certificate(certificate, tmp_path / "new")
    assert path.parent == tmp_path / "new"
    assert stored_certificates(tmp_path / "new") == [certificate]
    assert list((tmp_path / "new").iterdir()) == [path]


def test_a_newer_one_takes_the_place_of_the_older(tmp_path: Path, run: Run) -> None:
    first = fitting(run)
    later = replace(first, made_at="2026-11-30T20:00:00+00:00", lines=())
    assert keep_certificate(first, tmp_path) == keep_certificate(later, tmp_path)
    assert stored_certificates(tmp_path) == [later]


def test_a_run_gets_the_certificate_of_its_provider(tmp_path: Path, run: Run) -> None:
    certificate = fitting(run)
    keep_certificate(certificate, tmp_path)
    label = run.cases[0].case.runtime.label
    assert certified(run, tmp_path).certificates == (replace(certificate, runtime=label),)


@pytest.mark.parametrize(
    "change",
    [
        lambda it: replace(it, provider="cpu:1"),
        lambda it: replace(it, provider_name="OtherExecutionProvider"),
        lambda it: replace(it, runtime_version="0.9"),
        lambda it: replace(it, distributions={"onnxruntime": "0.9"}),
        lambda it: replace(it, ortbench_version="0.0.1"),
        lambda it: replace(it, machine={"cpu": "B"}),
        lambda it: replace(it, host="elsewhere"),
    ],
    ids=["device", "provider", "version", "distribution", "product", "machine", "host"],
)
def test_another_one_is_not_shown_as_valid(
    tmp_path: Path, run: Run, change: Callable[[Certificate], Certificate]
) -> None:
    keep_certificate(change(fitting(run)), tmp_path)
    assert len(stored_certificates(tmp_path)) == 1
    assert certified(run, tmp_path).certificates == ()


def test_another_driver_is_another_certificate(tmp_path: Path) -> None:
    run = run_of(make_result(case=make_case(provider="cuda")))
    certificate = replace(fitting(run, CUDA), devices={"GPU-1": "Example, driver 1"})
    keep_certificate(certificate, tmp_path)
    assert certified(run, tmp_path).certificates == ()
    # The CPU's does not depend on a GPU beside it.
    run = run_of(make_result(case=make_case(provider="cpu")))
    keep_certificate(replace(fitting(run), devices={"GPU-1": "Example, driver 1"}), tmp_path)
    assert len(certified(run, tmp_path).certificates) == 1


def test_a_run_that_measured_nothing_reads_nothing(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_certificate(fitting(run), tmp_path)
    monkeypatch.setattr(certificates, "stored_certificates", lambda _folder: 1 / 0)
    empty = replace(run, cases=(replace(run.cases[0], measurements=()),))
    assert certified(empty, tmp_path) is empty


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"provider": 3}',
        b" " * (certificates.LARGEST_BYTES + 1),
    ],
    ids=["empty", "nothing", "deep", "bytes", "type", "large"],
)
def test_a_file_of_no_use_is_left_out(tmp_path: Path, run: Run, content: bytes) -> None:
    keep_certificate(fitting(run), tmp_path)
    (tmp_path / "other.json").write_bytes(content)
    assert stored_certificates(tmp_path) == [fitting(run)]


@pytest.mark.parametrize(
    ("field", "value"),
    [("verdict", "fine"), ("seconds", -1.0), ("check", "x" * 2_000_000)],
)
def test_values_that_can_not_be_are_left_out(
    tmp_path: Path, run: Run, field: str, value: object
) -> None:
    path = keep_certificate(fitting(run), tmp_path)
    plain = json.loads(path.read_bytes())
    plain["lines"][0][field] = value
    path.write_text(json.dumps(plain))
    assert stored_certificates(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_links_and_pipes_are_not_opened(tmp_path: Path, run: Run) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "link.json").symlink_to(keep_certificate(fitting(run), tmp_path / "other"))
    os.mkfifo(kept / "pipe.json")
    (kept / "folder.json").mkdir()
    assert stored_certificates(kept) == []


def test_so_many_files_are_read_at_most(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "MOST_FILES", 2)
    for number in range(4):
        path = keep_certificate(replace(fitting(run), host=f"h{number}"), tmp_path)
        os.utime(path, (number, number))
    assert [entry.host for entry in stored_certificates(tmp_path)] == ["h3", "h2"]


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DocumentError) as caught:
        keep_certificate(fitting(run), tmp_path / "file")
    assert caught.value.place.startswith(str(tmp_path / "file"))


@pytest.mark.parametrize("named", [True, False])
def test_a_state_folder_that_is_a_file_is_told_with_the_variable_that_names_it(
    named: bool, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "labels.csv"
    state.touch()
    monkeypatch.setattr(certificates, "certificates_folder", lambda: state / "self-check")
    monkeypatch.setenv("XDG_STATE_HOME", str(state if named else tmp_path / "elsewhere"))
    with pytest.raises(DocumentError) as caught:
        keep_certificate(fitting(run))
    assert repr(str(state)) in caught.value.message
    assert ("XDG_STATE_HOME" in caught.value.hint) == named


def test_no_folder_is_no_certificate(tmp_path: Path, run: Run) -> None:
    assert stored_certificates(tmp_path / "none") == []
    assert certified(run, tmp_path / "none").certificates == ()


def test_a_document_keeps_certificates(run: Run) -> None:
    told = replace(run, certificates=(fitting(run),))
    assert decode_run(encode_run(told), "run.json").certificates == told.certificates


def test_merged_runs_have_the_certificate_of_the_newer_one(run: Run) -> None:
    first = replace(run, certificates=(replace(fitting(run), lines=()),))
    later = replace(
        run,
        run_id="20270102T030405Z-bench-1-0a1b",
        started_at="2027-01-02T03:04:05+00:00",
        certificates=(fitting(run),),
    )
    assert merge_runs([later, first]).certificates == (fitting(run),)
