"""Session config entries: dropped ones are refused, and doubtful ones told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.session_entries import DOCUMENTED, is_documented
from pytest_ortbench.worker import session_entries
from pytest_ortbench.worker.session_entries import unconfirmed_entries
from tests.results_factory import make_case

CUDA = Provider(alias="cuda", name="CUDAExecutionProvider")


def case_of(
    *, provider: Provider | None = None, custom_ops: tuple[str, ...] = (), **entries: str
) -> Case:
    case = make_case()
    return replace(
        case,
        provider=case.provider if provider is None else provider,
        session=SessionConfig(
            entries={key.replace("__", "."): value for key, value in entries.items()},
            custom_ops=custom_ops,
        ),
    )


def with_entry(key: str, value: str = "1", **more: Any) -> Case:
    case = case_of(**more)
    return replace(case, session=replace(case.session, entries={key: value}))


@pytest.fixture(scope="module", autouse=True)
def _keys_are_read_once() -> Iterator[None]:
    """Look for the keys in the libraries, which are large, once for all tests."""
    read = cache(session_entries._known_keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_entries, "_known_keys", lambda libraries: read(tuple(libraries)))
        yield


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("session.intra_op.allow_spinning", "0"),
        ("session.disable_prepacking", "1"),
        ("session.force_spinning_stop", "1"),
        ("optimization.enable_gelu_approximation", "1"),
        ("optimization.disable_specified_optimizers", "ConstantFolding"),
        ("session.qdq_matmulnbits_accuracy_level", "4"),
    ],
)
def test_what_it_reads_is_confirmed(key: str, value: str) -> None:
    assert is_documented(key, value)
    assert unconfirmed_entries(with_entry(key, value)) == {}


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("session.foo", "-"),
        ("session.contextt", "-"),
        ("session.cuda", "-"),
        ("optimization.gelu_approximation", "optimization.enable_gelu_approximation"),
        ("ep.disable_prepacking", "session.disable_prepacking"),
        ("session.intra_op", ""),
        ("session.disable_prepackin", "session.disable_prepacking"),
        ("Session.Disable_Prepacking", "session.disable_prepacking"),
        ("optimization.fast", ""),
        ("ep.contextt_enable", "ep.context_enable"),
        ("ep.context_enabled", "ep.context_enable"),
        ("foo.bar", ""),
        ("acme.speed", ""),
        ("ep.acme.speed", ""),
        ("mlas.use_lut_gem", "mlas.use_lut_gemm"),
        ("ep.cuda.foo", "-"),
        ("ep.cuda", "-"),
        ("session.disable_prepacking ", "session.disable_prepacking"),
        ("session.of_a_later_version", ""),
    ],
)
def test_what_nobody_reads_is_refused(key: str, near: str) -> None:
    case = with_entry(key)
    entries = {"session.disable_prepacking": "1", **case.session.entries}
    with pytest.raises(WorkerError) as caught:
        unconfirmed_entries(replace(case, session=replace(case.session, entries=entries)))
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("error", "session")
    assert f" {onnxruntime.__version__} " in failure.message
    assert failure.message.endswith(repr(key))
    if near == "-":
        # The beginning of keys, as ``ep.cuda.``, is none; neither is the name of a source file.
        assert "?" not in failure.hint
    elif near:
        assert repr(near) in failure.hint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        # A value that it takes for the default, and a key whose values nobody documents.
        ("session.disable_prepacking", "yes"),
        ("mlas.use_lut_gemm", "1"),
        # Of providers that compile, and of another provider.
        ("ep.context_enable", "1"),
        ("ep.cuda.fpa_intb_gemm", "1"),
    ],
)
def test_what_it_knows_and_may_ignore_is_unconfirmed(key: str, value: str) -> None:
    assert list(unconfirmed_entries(with_entry(key, value))) == [key]


def test_an_option_of_the_own_provider_is_only_undocumented() -> None:
    [why] = unconfirmed_entries(with_entry("ep.cuda.fpa_intb_gemm", provider=CUDA)).values()
    assert "not documented" in why
    assert unconfirmed_entries(with_entry("ep.context_enable", provider=CUDA)) == {}


def test_custom_operators_may_read_what_nobody_knows(tmp_path: Path) -> None:
    library = tmp_path / "libacme.so"
    library.write_bytes(b"\0acme.speed\0")
    for key, said in (("acme.speed", "libacme.so"), ("acme.colour", "no other reader reports it")):
        found = unconfirmed_entries(with_entry(key, custom_ops=(str(library),)))
        assert said in found[key]
    with pytest.raises(WorkerError):
        unconfirmed_entries(with_entry("session.foo", custom_ops=(str(library),)))


def test_a_documented_key_that_the_library_does_not_show_is_not_condemned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a newer version, or taken apart by the compiler."""
    monkeypatch.setattr(session_entries, "_holds", lambda file, key: False)  # noqa: ARG005
    [why] = unconfirmed_entries(with_entry("session.load_model_format", "ONNX")).values()
    assert "another version" in why
    with pytest.raises(WorkerError):
        unconfirmed_entries(with_entry("session.foo"))


def test_a_library_that_can_t_be_looked_into_confirms_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_entries, "_LIBRARIES", ("no_such_library",))
    assert list(unconfirmed_entries(with_entry("session.disable_prepacking"))) == [
        "session.disable_prepacking"
    ]


def test_no_entry_needs_no_look() -> None:
    assert unconfirmed_entries(case_of()) == {}


def test_documented_keys_are_known_to_some_onnx_runtime() -> None:
    assert not [key for key in DOCUMENTED if key != key.strip() or "." not in key]
    assert not is_documented("session.disable_prepacking", "true")
    assert not is_documented("session.foo", "1")
