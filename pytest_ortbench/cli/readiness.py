"""What ``ortbench models inspect`` says of providers, and the operators of a reduced build."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_ortbench.cli.arguments import PROVIDERS, naming_providers
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.readiness import CAUSES, WITHOUT_SESSION, NotTaken, Readiness
from pytest_ortbench.core.units import counted
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.planning.providers import split_specs
from pytest_ortbench.planning.readiness import readiness
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.schema.model_questions import ListOperators, RequiredOperators
from pytest_ortbench.session import Session
from pytest_ortbench.store.writable import unwritable

#: Saving a model in another format and reading its operators.
_LISTING_S = 300.0
#: The option that names the list of operators.
OPS_CONFIG = "--ops-config"
_CODES = {
    "all": ExitCode.FINE,
    "some": ExitCode.LIMIT_FAILED,
    "refused": ExitCode.LIMIT_FAILED,
    "not tried": ExitCode.WRONG_CALL,
}


def try_providers(
    models: Sequence[str], providers: str, runtimes: Sequence[str], custom_ops: tuple[str, ...] = ()
) -> int:
    """Try each model on each provider, and say what is not taken.

    Args:
        models: Their specifications.
        providers: As written.
        runtimes: Where to try them.
        custom_ops: Custom operator libraries that they need.

    Raises:
        UsageError: if the request can't be understood.
    """
    specs = split_specs(providers, place=PROVIDERS)
    code = ExitCode.FINE
    with Session(Path.cwd(), runtimes=runtimes, notify=warn) as session:
        request = PlanRequest(
            models=tuple(models), providers=specs, custom_ops=custom_ops, generate="off"
        )
        with naming_providers():
            plan = session.plan(request)
        for skip in plan.skips:
            warn(f"ortbench: left out {skip.what}: {skip.reason}")
        for planned in plan.entries:
            found = readiness(planned, session.launcher)
            say("")
            _tell(planned.case.model.name, found)
            code = max(code, _CODES[found.state])
    return code if plan.entries else ExitCode.WRONG_CALL


def _tell(model: str, found: Readiness) -> None:
    where = "" if found.runtime == "current" else f" in {found.runtime}"
    head = f"{model} on {found.provider}{where}"
    if found.state in WITHOUT_SESSION:
        hint = f". {found.hint}" if found.hint else ""
        say(f"{head}: {found.state}: {found.reason}{hint}")
        return
    seen = "computing nodes ran there" if found.told_by == "profile" else "nodes are taken"
    links = ", ".join(f"{label} {count}" for label, count in found.by_link.items())
    say(f"{head}: {found.taken} of {found.total} {seen}{f' ({links})' if links else ''}")
    if found.not_taken:
        header = ["not taken", "nodes", "which", "went to", "why"]
        say(table([list(_row(entry)) for entry in found.not_taken], header=header, indent=2))


def _row(entry: NotTaken) -> Iterator[str]:
    more = entry.nodes - len(entry.names)
    yield entry.op
    yield str(entry.nodes)
    yield ", ".join(entry.names) + (f" and {more} more" if entry.names and more else "")
    yield entry.elsewhere.removesuffix("ExecutionProvider")
    yield f"{CAUSES[entry.cause]}{f' ({entry.detail})' if entry.detail else ''}"


def write_operators(
    models: Sequence[Model],
    target: Path,
    runtimes: Sequence[str],
    custom_ops: tuple[str, ...] = (),
) -> int:
    """Write the operators of models as the configuration of a reduced build.

    Args:
        models: As they were read.
        target: The file.
        runtimes: Where ONNX Runtime lists them: the first of these.
        custom_ops: Custom operator libraries that they need.

    Raises:
        UsageError: if the file can't be written.
    """
    with (
        Session(Path.cwd(), runtimes=runtimes[:1], notify=warn) as session,
        OwnFolder("operators") as folder,
    ):
        chosen = session.runtimes
        [runtime] = chosen.runtimes
        failure = chosen.failures.get(runtime.label)
        if failure is not None:
            warn(f"ortbench: {failure.message}. {failure.hint}".rstrip())
            return ExitCode.WRONG_CALL
        question = ListOperators(
            paths=tuple(model.path for model in models), folder=str(folder), custom_ops=custom_ops
        )
        try:
            found = session.launcher.ask(
                question, deadline=time.monotonic() + _LISTING_S, runtime=runtime
            )
        except WorkerError as error:
            warn(f"ortbench: {error}")
            return ExitCode.WRONG_CALL
    try:
        replace_file(target, "".join(f"{line}\n" for line in _lines(models, found)).encode())
    except OSError as error:
        raise unwritable(target, error, OPS_CONFIG) from error
    types = "with the types of their values" if found.has_types else "without types"
    say(f"{target}: {counted(found.operators, 'operator')} {types}")
    return ExitCode.FINE


def _lines(models: Sequence[Model], found: RequiredOperators) -> Iterator[str]:
    yield "# What a reduced build of ONNX Runtime needs for"
    for model in models:
        yield f"# - {' '.join(model.name.split())} (SHA-256 {model.digest})"
    yield (
        f"# as it is and as ONNX Runtime {found.version} optimises it here (level all); "
        "each line: domain;operator set;operators"
    )
    yield from found.lines
