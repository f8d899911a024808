"""From checks to a certificate: each line stands for itself, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Certificate, CheckLine
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.run import Machine
from pytest_ortbench.schema.meaning import faults_of
from pytest_ortbench.selfcheck.certify import certify
from pytest_ortbench.selfcheck.check import CantLook, Check, passed, unchecked
from tests.results_factory import make_failure, make_runtime_info

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
BENCH: Any = SimpleNamespace(provider=CPU, short=False)
MACHINE = Machine(host="here", stable={"cpu": "A"})


def raising(error: Exception) -> Callable[[Any], Any]:
    def look(_bench: Any) -> Any:
        raise error

    return look


def a_check(name: str, look: Callable[[Any], Any] = lambda _: 1) -> Check[Any]:
    return Check(
        name=name, about="one and one", look=look, judge=lambda facts, _: passed("one", f"{facts}")
    )


def certified_by(*checks: Check[Any], **settings: Any) -> Certificate:
    return certify(
        BENCH,
        checks,
        runtime="current",
        info=make_runtime_info(),
        machine=MACHINE,
        **settings,
    )


def test_what_a_certificate_speaks_for() -> None:
    certificate = certified_by(a_check("one"), a_check("two"))
    assert [line.check for line in certificate.lines] == ["one", "two"]
    assert (certificate.provider, certificate.provider_name) == ("cpu", CPU.name)
    assert (certificate.runtime, certificate.runtime_version) == ("current", "1.32.0")
    assert certificate.machine == {"cpu": "A"}
    assert (certificate.count("pass"), certificate.has_failed) == (2, False)
    assert list(faults_of(certificate)) == []


@pytest.mark.parametrize(
    ("error", "verdict", "cause"),
    [
        (CantLook(unchecked("left out", "it is not here")), "unchecked", "left out"),
        (WorkerError(make_failure("crash")), "unchecked", "crash"),
        (WorkerError(make_failure("timeout")), "unchecked", "timeout"),
        # Another provider ran in its place: that is no missing evidence.
        (WorkerError(make_failure("fallback")), "fail", "fallback"),
        (UsageError("it is not known", place="there"), "unchecked", "refused"),
    ],
)
def test_a_check_that_raises_leaves_the_others_alone(
    error: Exception, verdict: str, cause: str
) -> None:
    first, second = certified_by(a_check("one", raising(error)), a_check("two")).lines
    assert (first.verdict, first.cause) == (verdict, cause)
    assert first.reason
    assert second.verdict == "pass"


def test_what_has_no_time_is_not_checked() -> None:
    seen: list[CheckLine] = []
    certificate = certified_by(a_check("one"), a_check("two"), on_line=seen.append, budget_s=0.0)
    assert [(line.verdict, line.cause) for line in certificate.lines] == [
        ("unchecked", "no time"),
        ("unchecked", "no time"),
    ]
    assert tuple(seen) == certificate.lines
    assert certificate.is_empty


def test_a_defect_is_no_line() -> None:
    with pytest.raises(ZeroDivisionError):
        certified_by(a_check("one", lambda _: 1 / 0))
