"""``ortbench selfcheck``: whether what is measured on this machine holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from pytest_ortbench.cli.arguments import PROVIDERS, epilog, naming_providers
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.certificate import Certificate
from pytest_ortbench.core.errors import DocumentError, UsageError, did_you_mean
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.secrets import masked
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.planning.providers import split_specs
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.report.certificates import certificate_title, check_line, counts
from pytest_ortbench.selfcheck.bench import SessionBench
from pytest_ortbench.selfcheck.certify import certify
from pytest_ortbench.selfcheck.check import Check
from pytest_ortbench.selfcheck.registry import all_checks
from pytest_ortbench.session import Session
from pytest_ortbench.store.certificates import keep_certificate
from pytest_ortbench.store.writable import require_writable_file, unwritable

#: What is planned to find out which providers run.
_MODEL = "builtin:canary"
_JSON = "--json"


@click.command(
    epilog=epilog(
        "ortbench selfcheck",
        "ortbench selfcheck --providers=cuda --json=certificate.json",
        "ortbench selfcheck --runtimes=onnxruntime-openvino --providers=openvino --short",
    )
)
@click.option(
    "--providers",
    metavar="LIST",
    default="all",
    show_default=True,
    help="The providers, as for --ort-providers.",
)
@click.option(
    "--runtimes",
    metavar="SPEC",
    multiple=True,
    default=("current",),
    help="The runtimes, as for --ort-runtimes; repeatable. [default: current]",
)
@click.option("--short", is_flag=True, help="Leave out the checks that take long.")
@click.option(
    "--only",
    metavar="LIST",
    default="",
    help="Carry out these checks only; then no certificate is kept.",
)
@click.option(
    _JSON,
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the certificates to this file, too.",
)
def command(
    providers: str, runtimes: tuple[str, ...], short: bool, only: str, json_path: Path | None
) -> int:
    """Check what is measured on this machine against independent measurements.

    For every provider that runs here: the timed loop against a bare loop and against events of the
    device, a loop without synchronisation, placement, accuracy, precisions, memory, energy, clocks
    and the device itself. Each line is 'pass', 'fail' or 'can't be checked', with the numbers.

    The certificate is kept for this user, and goes into later run documents of this machine as
    long as driver and versions stay the same. It takes less than five minutes a provider.

    Exit code 1 if a line failed, 3 if nothing could be checked or a provider that is named does not
    run.
    """
    checks = _chosen(only, short=short)
    if json_path is not None:
        require_writable_file(json_path, _JSON)
    certificates: list[Certificate] = []
    idle: list[Provider] = []
    with (
        Session(Path.cwd(), runtimes=runtimes, notify=warn) as session,
        OwnFolder("selfcheck") as folder,
    ):
        for provider, runtime, falls_back in _targets(session, providers, idle):
            # Of what runs elsewhere, nothing but that is to be said.
            carried_out = _chosen("placement", short=short) if falls_back else checks
            certificates.append(
                _certificate(session, folder, provider, runtime, carried_out, short=short)
            )
            say(f"  {counts(certificates[-1])}")
    if not only:
        _keep(certificates)
    if json_path is not None:
        _write(json_path, certificates)
    if any(certificate.has_failed for certificate in certificates):
        return ExitCode.LIMIT_FAILED
    if any(provider.named for provider in idle) or all(
        certificate.is_empty for certificate in certificates
    ):
        return ExitCode.NOTHING
    return ExitCode.FINE


def _chosen(only: str, *, short: bool) -> list[Check[Any]]:
    """The checks that are carried out.

    Raises:
        UsageError: for a name that no check has.
    """
    known = {check.name: check for check in all_checks()}
    named = [name.strip() for name in only.split(",") if name.strip()]
    for name in named:
        if name not in known:
            raise UsageError(
                f"{name!r} is not a check of 'ortbench selfcheck'",
                place="--only",
                hint=did_you_mean(name, known),
            )
    if named:
        return [check for name, check in known.items() if name in named]
    return [check for check in known.values() if check.in_short or not short]


def _targets(
    session: Session, providers: str, idle: list[Provider]
) -> Iterator[tuple[Provider, Runtime, bool]]:
    """Each provider that runs, with its runtime; what does not is said on standard error.

    One that is named and leaves everything to another provider is among them, and marked.

    Args:
        session: Plans and tries them.
        providers: As written.
        idle: Takes those that do not run.
    """
    specs = split_specs(providers, place=PROVIDERS)
    with naming_providers():
        plan = session.plan(PlanRequest(models=(_MODEL,), providers=specs))
    for skip in plan.skips:
        where = f" in {skip.runtime}" if skip.runtime else ""
        warn(f"ortbench: left out {skip.what}{where}: {skip.reason}")
    for planned in plan.entries:
        case = planned.case
        if planned.refusal is not None:
            idle.append(case.provider)
            _tell(case.provider, planned.refusal.message, planned.refusal.hint)
        elif not case.provider.is_execution_provider:
            warn(f"ortbench: left out {case.provider.label}: it is no execution provider")
        elif case.provider.then:
            warn(f"ortbench: left out {case.provider.label}: name its providers one by one")
        else:
            [outcome] = session.launcher.probe(case.runtime, [case.provider])
            falls_back = outcome.failure is None and not outcome.usable
            if outcome.usable or (falls_back and case.provider.named):
                yield case.provider, case.runtime, falls_back
            else:
                idle.append(case.provider)
                hint = "" if outcome.failure is None else outcome.failure.hint
                _tell(case.provider, outcome.reason, hint)


def _tell(provider: Provider, reason: str, hint: str) -> None:
    """Say why a provider does not run, on standard error."""
    warn(f"ortbench: {provider.described} does not run: {reason}{f'. {hint}' if hint else ''}")


def _certificate(
    session: Session,
    folder: Path,
    provider: Provider,
    runtime: Runtime,
    checks: Sequence[Check[Any]],
    *,
    short: bool,
) -> Certificate:
    bench = SessionBench(
        plan=session.plan,
        prepare=session.prepare,
        launcher=session.launcher,
        provider=provider,
        runtime=runtime,
        folder=folder,
        short=short,
    )
    info: RuntimeInfo = session.launcher.inspect(runtime)
    width = max(len(check.name) for check in checks)
    say(certificate_title(provider.label, runtime.label, info.version, short=short))
    return certify(
        bench,
        checks,
        runtime=runtime.label,
        info=info,
        machine=fingerprint(),
        on_line=lambda line: say(check_line(line, width)),
    )


def _keep(certificates: Sequence[Certificate]) -> None:
    """Store certificates; one that can't be stored has been shown, and is no failure of a check."""
    for certificate in certificates:
        if certificate.is_empty:
            warn(f"ortbench: no certificate of {certificate.provider}: no line could be checked")
            continue
        try:
            path = keep_certificate(certificate)
        except DocumentError as error:
            warn(f"ortbench: the certificate can't be stored: {error}")
        else:
            say(f"kept: {path}")


def _write(path: Path, certificates: Sequence[Certificate]) -> None:
    content = msgspec.json.encode([masked(certificate) for certificate in certificates])
    try:
        replace_file(path, msgspec.json.format(content, indent=2) + b"\n")
    except OSError as error:
        raise unwritable(path, error, _JSON) from error
