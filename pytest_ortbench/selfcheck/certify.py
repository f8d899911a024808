"""Carries out the checks of one provider, and makes the certificate of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Certificate, CheckLine
from pytest_ortbench.core.errors import OrtbenchError, WorkerError
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.run import Machine
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.selfcheck.check import (
    CantLook,
    Check,
    CheckBench,
    LineFinding,
    failed_to_run,
    unchecked,
)
from pytest_ortbench.store.certificates import elsewhere

#: The line that says whether a provider runs anything at all.
PLACEMENT = "placement"

#: What all checks of a provider may take; what does not fit any more is not checked.
BUDGET_S = 270.0


def certify(
    bench: CheckBench,
    checks: Sequence[Check[Any]],
    *,
    runtime: str,
    info: RuntimeInfo,
    machine: Machine,
    on_line: Callable[[CheckLine], object] = lambda _: None,
    budget_s: float = BUDGET_S,
) -> Certificate:
    """Carry out checks one after the other; one that fails leaves the others alone.

    Of a provider that leaves everything to another one there is the line of its placement alone:
    what the others would say is true of the other provider.

    Args:
        bench: Of the provider.
        checks: What is checked.
        runtime: Label of the runtime.
        info: What the runtime is.
        machine: Where it runs.
        on_line: Told of each line when it is there.
        budget_s: What all of them may take.
    """
    began = time.monotonic()
    placed = {check.name: line_of(check, bench) for check in checks if check.name == PLACEMENT}
    if any(line.cause == "fallback" for line in placed.values()):
        checks = [check for check in checks if check.name == PLACEMENT]
    lines: list[CheckLine] = []
    for check in checks:
        has_time = time.monotonic() - began < budget_s
        line = placed.get(check.name)
        if line is None:
            line = line_of(check, bench) if has_time else _without_time(check)
        lines.append(line)
        on_line(line)
    provider: Provider = bench.provider
    return Certificate(
        provider=provider.label,
        provider_name=provider.name,
        runtime=runtime,
        runtime_version=info.version,
        distributions=dict(info.distributions),
        ortbench_version=VERSION,
        made_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=dict(machine.stable),
        host=elsewhere(info, machine),
        devices=dict(info.devices),
        short=bench.short,
        lines=tuple(lines),
    )


def line_of(check: Check[Any], bench: CheckBench) -> CheckLine:
    """Carry out one check; whatever it raises that is no defect becomes its line."""
    began = time.monotonic()
    try:
        finding = check.judge(check.look(bench), bench.provider)
    except CantLook as error:
        finding = error.finding
    except WorkerError as error:
        finding = failed_to_run(error.failure)
    except OrtbenchError as error:
        finding = unchecked("refused", error.message)
    return _line(check, finding, time.monotonic() - began)


def _without_time(check: Check[Any]) -> CheckLine:
    return _line(check, unchecked("no time", "the other checks took all of the time"), 0.0)


def _line(check: Check[Any], finding: LineFinding, seconds: float) -> CheckLine:
    return CheckLine(
        check=check.name,
        about=check.about,
        verdict=finding.verdict,
        cause=finding.cause,
        reason=finding.reason,
        amounts=finding.amounts,
        words=finding.words,
        seconds=seconds,
    )
