"""What a self-check found out about one provider of one machine: raw facts and verdicts by line.

A certificate speaks for the versions and the hardware that it names, and for nothing else. What
could not be looked at is a line of its own, and never a good one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: What a line may come to, and what people read.
LINE_VERDICTS: dict[str, str] = {
    "pass": "pass",
    "fail": "fail",
    "unchecked": "can't be checked",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number that a line rests on.

    Attributes:
        name: What it is, for people: ``ratio``, ``power by the counter``.
        value: The number, in ``unit``.
        unit: A unit that :func:`~pytest_ortbench.core.units.format_amount` knows.
        low: Lower end of its interval; ``None`` without one.
        high: Upper end.
    """

    name: str
    value: float
    unit: str = "1"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """What one check came to.

    Attributes:
        check: Name of the check: ``loop``, ``memory``.
        about: What it compares, for people.
        verdict: A key of :data:`LINE_VERDICTS`.
        cause: A word that tells the ways apart in which the check comes to its verdict.
        reason: The same for people.
        amounts: The numbers that it rests on.
        words: What it rests on that is no number: a UUID, a precision, by name.
        seconds: How long it took.
    """

    check: str
    about: str
    verdict: str
    cause: str
    reason: str
    amounts: tuple[Amount, ...] = ()
    words: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A self-check of one provider in one runtime.

    Attributes:
        provider: Label of the provider, ``cuda:1``; what its cases are called by.
        provider_name: ONNX Runtime's name of it.
        runtime: Label of the runtime.
        runtime_version: Version of ONNX Runtime.
        distributions: Distributions of ONNX Runtime with their versions.
        ortbench_version: Version of this package.
        made_at: UTC, ISO 8601.
        machine: The stable facts of the machine.
        host: Where the runtime lies, if that is another machine than the one that measures (or a
            container); empty otherwise.
        devices: NVIDIA GPUs by UUID: name and driver.
        short: Whether it was the short form, which leaves out what takes long.
        lines: One entry a check.
    """

    provider: str
    provider_name: str
    runtime: str
    runtime_version: str
    distributions: dict[str, str]
    ortbench_version: str
    made_at: str
    machine: dict[str, str]
    host: str = ""
    devices: dict[str, str] = field(default_factory=dict)
    short: bool = False
    lines: tuple[CheckLine, ...] = ()

    def count(self, verdict: str) -> int:
        """Return how many lines came to a verdict."""
        return sum(line.verdict == verdict for line in self.lines)

    @property
    def has_failed(self) -> bool:
        """Whether a line says that something is wrong."""
        return bool(self.count("fail"))

    @property
    def is_empty(self) -> bool:
        """Whether it proves nothing: no line could be checked."""
        return not self.count("fail") and not self.count("pass")
