"""``ortbench serve``: a model behind HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_ortbench.cli.arguments import (
    FiniteRange,
    epilog,
    naming_providers,
    require_model,
    words_for_pytest,
)
from pytest_ortbench.cli.terminal import ExitCode, say, step, warn
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.endpoint_address import is_loopback
from pytest_ortbench.core.errors import OrtbenchError, UsageError, WorkerError, says
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.provider_kinds import BY_NAME
from pytest_ortbench.core.units import parse_duration
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.axes import parse_dims, split_list
from pytest_ortbench.planning.families import families
from pytest_ortbench.planning.providers import split_specs
from pytest_ortbench.planning.recipes import check_precisions, recipes
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.served_apps import path_name, required_name
from pytest_ortbench.serving.service import ServiceLimits
from pytest_ortbench.session import Session

_OPEN = (
    "note: other machines can reach {host}, and this service has neither TLS nor a password. Put "
    "a proxy with both in front of it"
)
_MEGABYTE = 2**20


@click.command(
    epilog=epilog(
        "ortbench serve model.onnx",
        "ortbench serve zoo:silero-vad --port=9000 --name=vad",
        "ortbench serve builtin:resnet50 --batch=8 --batch-wait=5ms",
        "pip install 'pytest-ortbench[serve]'",
    )
)
@click.argument("model", metavar="MODEL")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen at; 0 for any that is free.",
)
@click.option("--name", metavar="NAME", help="Name of the model in requests; by default its own.")
@click.option("--provider", default="cpu", show_default=True, help="As --ort-providers takes it.")
@click.option("--precision", default="native", show_default=True, help="As --ort-precisions.")
@click.option("--dims", metavar="NAME:V", multiple=True, help="Sizes of symbolic dimensions.")
@click.option("--threads", type=click.IntRange(min=1), help="Intra-op threads of the session.")
@click.option(
    "--callers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Inferences at a time.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    help="Most rows that requests are joined into; 1 joins none.",
)
@click.option(
    "--batch-wait",
    default="2ms",
    show_default=True,
    help="How long a request waits to be joined with others; 0ms joins those that wait already.",
)
@click.option(
    "--queue",
    type=click.IntRange(1, 100_000),
    default=512,
    show_default=True,
    help="Requests that may wait; one more is answered with 429.",
)
@click.option(
    "--body",
    type=FiniteRange(min=0, min_open=True, max=2048),
    default=64,
    show_default=True,
    help="Largest body of a request, in MiB.",
)
@click.option(
    "--timeout", default="30s", show_default=True, help="Most time from a request to its answer."
)
@click.option(
    "--drain",
    default="1s",
    show_default=True,
    help="At the end: how long requests are still taken, and how long connections are waited for; "
    "0s waits for neither.",
)
@click.option("--no-metrics", is_flag=True, help="Count and time nothing; there is no /metrics.")
@click.option(
    "--traces",
    is_flag=True,
    help="Make spans of each request with OpenTelemetry, which go where its environment variables "
    "say (OTEL_TRACES_EXPORTER: otlp or console).",
)
def command(
    model: str,
    host: str,
    port: int,
    name: str | None,
    provider: str,
    precision: str,
    dims: tuple[str, ...],
    threads: int | None,
    callers: int,
    batch: int,
    batch_wait: str,
    queue: int,
    body: float,
    timeout: str,
    drain: str,
    no_metrics: bool,
    traces: bool,
) -> int:
    """Serve MODEL, a file or a name such as zoo:silero-vad, by the Open Inference Protocol.

    It answers at /v2/models/NAME/infer (JSON, and tensors as bytes), tells what it is at /v2, and
    shows counters and times to Prometheus at /metrics. SIGTERM ends it: what was taken is answered.
    """
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        refuse_without(module, "serve", place="serve")
    if traces:
        refuse_without("opentelemetry.sdk", "otel", place="--traces")
    limits = ServiceLimits(
        waiting=queue,
        body_bytes=int(body * _MEGABYTE),
        timeout_s=parse_duration(timeout, place="--timeout"),
        most_rows=batch,
        wait_s=parse_duration(batch_wait, place="--batch-wait", may_be_zero=True),
        callers=callers,
    )
    drain_s = parse_duration(drain, place="--drain", may_be_zero=True)
    _refuse_several("--provider", split_specs(provider, place="--provider"))
    _refuse_several("--precision", split_list(precision, place="--precision"))
    named = path_name(model) if name is None else required_name(name, place="--name")
    request = PlanRequest(
        models=(model,),
        providers=(provider,),
        precisions=(precision,),
        dims=parse_dims(dims, place="--dims") if dims else {},
        threads=() if threads is None else (threads,),
        generate="off",
    )
    require_model(model)
    _require_precision(precision)
    with Session(Path.cwd(), notify=step) as session, naming_providers("--provider"):
        case = _prepared(session, request)
        double = _doubled(session, request) if batch > 1 else None
    if not is_loopback(host):
        warn(_OPEN.format(host=host))
    make_server = import_named("pytest_ortbench.serving.server:ModelServer")
    try:
        server = make_server(
            case, named, limits, double=double, watched=not no_metrics, traced=traces
        )
    except OrtbenchError:
        raise
    except Exception as error:  # native errors have no common base class
        raise UsageError(
            f"{model!r} can't be served with {provider}. {says('ONNX Runtime', str(error))}",
            place="MODEL, --provider",
            hint=_other_way(request),
        ) from error
    for note in server.notes:
        warn(f"note: {note}")

    def announce(at: int) -> None:
        say(f"serving {named} at http://{_shown(host)}:{at}/v2/models/{named}")

    if server.serve(host, port, drain_s=drain_s, announce=announce):
        return ExitCode.FINE
    warn("ended at once by a second interrupt: requests that were not answered yet are lost")
    return ExitCode.INTERRUPTED


def _prepared(session: Session, request: PlanRequest) -> Case:
    """The one case of a request, with its file.

    Raises:
        UsageError: if there are several, or none.
        WorkerError: if it can't run, or its file can't be made.
    """
    plan = session.plan(request)
    if not plan.entries:
        # What was left out whatever the model is says nothing of the model.
        aliases = {kind.alias for kind in BY_NAME.values()}
        skips = [skip for skip in plan.skips if skip.what not in aliases] or plan.skips
        raise UsageError(
            f"{request.models[0]!r} can't be served: "
            + "; ".join(f"{skip.what}: {skip.reason}" for skip in skips),
            place="MODEL",
            hint=_other_model(request),
        )
    if len(plan.entries) > 1:
        cases = [entry.case for entry in plan.entries]
        sizes = ",".join(f"{name}:{first}" for name, (first, *_) in request.dims.items())
        place, hint = "--dims", f"Write one size for each dimension, e.g. --dims={sizes}"
        if len({case.model.path for case in cases}) > 1:
            place, hint = "MODEL", f"Name one model file, e.g. {cases[0].model.path}"
        elif len({case.provider.label for case in cases}) > 1:
            place, hint = (
                "--provider",
                f"Name one provider, e.g. --provider={cases[0].provider.label}",
            )
        elif len({case.variant.precision for case in cases}) > 1:
            place, hint = (
                "--precision",
                f"Name one precision, e.g. --precision={cases[0].variant.precision}",
            )
        raise UsageError(
            f"{request.models[0]!r} gives {len(cases)} cases, but a service runs one",
            place=place,
            hint=hint,
        )
    return session.prepare(plan.entries[0])


def _other_way(request: PlanRequest) -> str:
    """The next step where a model can't be served as it was asked for."""
    (model,), (provider,), (precision,) = request.models, request.providers, request.precisions
    if (provider, precision) == ("cpu", "native"):
        return f"To see what is wrong, run 'pytest {in_shell(words_for_pytest(model))}'"
    leave = {"--provider": provider != "cpu", "--precision": precision != "native"}
    named = " and ".join(option for option, is_given in leave.items() if is_given)
    return (
        f"To serve the model as it is, on the CPU, leave {named} out. For a provider that runs "
        "here, see 'ortbench providers'"
    )


def _other_model(request: PlanRequest) -> str:
    """The next step where no case is left of a model, whatever provider runs here."""
    (model,), (precision,) = request.models, request.precisions
    if precision != "native":
        return "To serve the model as it is, leave --precision out"
    found = resolve_models([model], root=Path.cwd(), notify=warn, place="MODEL")
    if any(isinstance(one, Model) and one.compiled for one in found):
        return "Name the model file that this file was compiled from"
    return _other_way(request)


def _require_precision(precision: str) -> None:
    """Refuse a precision that nobody knows at the option of this command.

    Raises:
        UsageError: with the nearest one.
    """
    here = Path.cwd()
    check_precisions(
        (precision,),
        place="--precision",
        known=recipes(here),
        variants=tuple(name for family in families(here).values() for name in family.variants),
        root=here,
    )


def _refuse_several(option: str, names: Sequence[str]) -> None:
    if len(names) > 1:
        raise UsageError(
            f"{', '.join(names)} are {len(names)} values, but a service takes one",
            place=option,
            hint=f"Write e.g. {option}={names[0]}",
        )


def _doubled(session: Session, request: PlanRequest) -> Case | None:
    """The same case with a batch of two; ``None`` where it has none, which is said."""
    try:
        return _prepared(session, replace(request, batch_sizes=(2,)))
    except WorkerError as error:
        warn(f"note: requests are not joined: {error.failure.told}")
        return None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
