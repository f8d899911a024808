"""What a check is: it looks at something through a bench, and judges what it saw.

Looking starts workers; judging is a pure function of facts, so that each verdict can be tried on
facts that were made up. Missing evidence is :func:`unchecked`, never :func:`passed`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.core.provider_kinds import OPENVINO
from pytest_ortbench.launch.seam import Launcher, Worker

F = TypeVar("F")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFinding:
    """What a check comes to; see :class:`~pytest_ortbench.core.certificate.CheckLine`."""

    verdict: str
    cause: str
    reason: str
    amounts: tuple[Amount, ...] = ()
    words: dict[str, str] = field(default_factory=dict)


def passed(cause: str, reason: str, *amounts: Amount, **words: str) -> LineFinding:
    """Return a finding whose evidence is complete and says that all is well."""
    return LineFinding(verdict="pass", cause=cause, reason=reason, amounts=amounts, words=words)


def wrong(cause: str, reason: str, *amounts: Amount, **words: str) -> LineFinding:
    """Return a finding whose evidence says that something is wrong."""
    return LineFinding(verdict="fail", cause=cause, reason=reason, amounts=amounts, words=words)


def unchecked(cause: str, reason: str, *amounts: Amount, **words: str) -> LineFinding:
    """Return a finding that lacks its evidence."""
    return LineFinding(
        verdict="unchecked", cause=cause, reason=reason, amounts=amounts, words=words
    )


class CantLook(Exception):
    """There is nothing to look at; a finding says why.

    Args:
        finding: What the check comes to.
    """

    def __init__(self, finding: LineFinding) -> None:
        self.finding = finding
        super().__init__(finding.reason)


class CheckBench(Protocol):
    """What a check looks through: cases of one provider in one runtime."""

    @property
    def provider(self) -> Provider:
        """The provider that is checked."""

    @property
    def short(self) -> bool:
        """Whether it is the short form, whose loops and windows are shorter."""

    @property
    def launcher(self) -> Launcher:
        """Starts workers."""

    def model(self, name: str) -> str:
        """Return the path of a model of known behaviour, by its name."""

    def case(
        self,
        model: str,
        *,
        precision: str = "native",
        io: str = "end-to-end",
        batch: int | None = None,
        callers: int = 1,
        threads: int | None = None,
        options: dict[str, str] | None = None,
    ) -> Case:
        """Return a case that is ready to run.

        Args:
            model: Specification of the model.
            precision: Its precision.
            io: Where inputs and outputs lie.
            batch: Size of the batch; ``None`` for the default.
            callers: Callers on the session.
            threads: Intra-op threads; ``None`` for the default.
            options: Further options of the provider.

        Raises:
            CantLook: if it is refused.
            WorkerError: if its file can't be made.
        """

    def opened(self, case: Case) -> AbstractContextManager[Worker]:
        """Open a case in a worker, warmed up."""

    def measured(self, case: Case) -> CaseResult:
        """Measure a case by the standard pass, in short, and once however many ask."""

    def heavy(self, io: str = "end-to-end") -> Case:
        """Return a case whose inference takes much longer than to start it."""

    def once(self, name: str, look: Callable[[], T]) -> T:
        """Return what a look found, taken once however many checks ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[F]):
    """One line of a certificate.

    Attributes:
        name: Of the line.
        about: What it compares, for people.
        look: Gathers facts through a bench.
        judge: Makes a finding of facts on a provider.
        in_short: Whether the short form has it.
    """

    name: str
    about: str
    look: Callable[[CheckBench], F]
    judge: Callable[[F, Provider], LineFinding]
    in_short: bool = True


def failed_to_run(failure: Failure) -> LineFinding:
    """Return what a failure of a worker comes to: a fallback is wrong, others are no evidence."""
    make = wrong if failure.kind == "fallback" else unchecked
    return make(failure.kind, failure.message)


def ran(result: CaseResult) -> LineFinding | None:
    """Return what the failure of a measured case comes to; ``None`` if it has none."""
    return None if result.failure is None else failed_to_run(result.failure)


def works_on_cpus(provider: Provider) -> bool:
    """Return whether the CPUs compute; for OpenVINO they do where no device is named."""
    is_usual = provider.name == OPENVINO and not provider.options.get(
        "device_type", provider.device
    )
    return provider.works_on_cpus or is_usual
