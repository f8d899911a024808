"""``ortbench profile``: where the time of an inference goes, and what bounds it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import (
    PROVIDERS,
    custom_ops_option,
    epilog,
    load_run,
    naming_providers,
    results_option,
)
from pytest_ortbench.cli.terminal import ExitCode, encoding, say, step, warn, width
from pytest_ortbench.core.errors import DocumentError, UsageError, WorkerError, did_you_mean
from pytest_ortbench.core.model_spec import SCHEMES
from pytest_ortbench.models.catalogue import project_catalogue
from pytest_ortbench.passes.profile.report import profile_lines
from pytest_ortbench.passes.profile.run import profile_case
from pytest_ortbench.planning.axes import (
    SESSION_EXAMPLE,
    parse_dims,
    parse_int_list,
    parse_settings,
    split_list,
)
from pytest_ortbench.planning.families import families
from pytest_ortbench.planning.planned_again import (
    TrustedOptions,
    choose_case,
    request_of,
    runtime_of,
)
from pytest_ortbench.planning.providers import parse_provider_options, split_specs
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.runtimes.config import configured_runtimes
from pytest_ortbench.session import Session

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.planning.matrix import Planned


@click.command(
    epilog=epilog(
        "ortbench profile model.onnx",
        "ortbench profile builtin:resnet50 --providers=cpu,cuda --batch-sizes=8 --top=5",
        "ortbench profile resnet50/native/cpu/b1 --trace=trace.json",
        "ortbench profile det/native/cpu/b1 --run=theirs.json --model=det.onnx",
    )
)
@click.argument("what", metavar="MODEL|CASE")
@click.option("--providers", metavar="SPEC", default="cpu", show_default=True, help="Where.")
@click.option("--precisions", metavar="SPEC", default="native", show_default=True, help="How.")
@click.option(
    "--batch-sizes",
    metavar="N,N",
    default="",
    help="Batch axis (default: 1, or what a model fixes).",
)
@click.option("--dims", metavar="NAME:V", multiple=True, help="Sizes of symbolic dimensions.")
@click.option("--threads", metavar="N", default="", help="Intra-op threads.")
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Rows of each list.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the Chrome trace of the profiled run to this file (of the first case, if there "
    "are several).",
)
@click.option("--run", "run", metavar="RUN", default="latest", help="The run that contains CASE.")
@click.option("--model", metavar="SPEC", default="", help="The model of CASE, if it is elsewhere.")
@click.option(
    "--runtimes", metavar="SPEC", default="", help="The runtime, as --ort-runtimes of pytest."
)
@click.option(
    "--inputs",
    type=click.Path(path_type=Path, exists=True),
    help="Real inputs, as --ort-inputs takes them.",
)
@click.option(
    "--session-option", "session_options", metavar="K=V", multiple=True, help="As for pytest."
)
@click.option(
    "--provider-option", "provider_options", metavar="A.K=V", multiple=True, help="As for pytest."
)
@custom_ops_option
@results_option
def command(
    what: str,
    providers: str,
    precisions: str,
    batch_sizes: str,
    dims: tuple[str, ...],
    threads: str,
    top: int,
    trace: Path | None,
    run: str,
    model: str,
    runtimes: str,
    inputs: Path | None,
    session_options: tuple[str, ...],
    provider_options: tuple[str, ...],
    custom_ops: tuple[Path, ...],
    results: Path,
) -> int:
    """Profile MODEL (a file, builtin:NAME, zoo:NAME), or a CASE of a stored run by its id.

    A run of its own, with ONNX Runtime's profiler on: its times are no benchmark.

    A stored CASE is planned again from this folder: the run says which case is meant, and never
    what is started, loaded or read. What it was measured with besides (a runtime, custom operators,
    options, inputs) is given here again.
    """
    if trace is not None and not trace.absolute().parent.is_dir():
        raise UsageError(
            f"{str(trace.absolute().parent)!r} is a file, not a folder"
            if trace.absolute().parent.exists()
            else f"the folder {str(trace.absolute().parent)!r} does not exist",
            place=f"--trace={trace}",
            hint="Name a file in another folder"
            if trace.absolute().parent.exists()
            else "Create the folder, or name a file in another folder",
        )
    given = TrustedOptions(
        model=model,
        runtime=runtimes,
        inputs=inputs,
        session_options=parse_settings(
            session_options, place="--session-option", example=SESSION_EXAMPLE
        ),
        provider_options=parse_provider_options(provider_options, place="--provider-option"),
        custom_ops=tuple(str(path.absolute()) for path in custom_ops),
    )
    stored = _stored(what, run, results, must_be_case=bool(model))
    runtime = given.runtime or "current"
    if stored is not None:
        runtime = runtime_of(stored, given, configured_runtimes(Path.cwd()), Path.cwd())
    with Session(Path.cwd(), runtimes=(runtime,), notify=warn) as session:
        if stored is not None:
            planned = _planned_again(stored, given, session)
        elif model:
            raise UsageError(
                f"the argument {what!r} already names the model, and --model is for the cases of "
                "a stored run",
                place=f"--model={model}",
                hint="Leave --model out",
            )
        else:
            request = PlanRequest(
                models=(what,),
                providers=tuple(split_specs((providers,), place=PROVIDERS)),
                precisions=tuple(split_list(precisions, place="--precisions")),
                batch_sizes=(
                    parse_int_list(batch_sizes, place="--batch-sizes") if batch_sizes else ()
                ),
                dims=parse_dims(dims, place="--dims") if dims else {},
                threads=parse_int_list(threads, place="--threads") if threads else (),
                inputs=given.inputs,
                session_options=dict(given.session_options),
                provider_options={name: dict(of) for name, of in given.provider_options.items()},
                custom_ops=given.custom_ops,
            )
            with naming_providers():
                plan = session.plan(request)
            for skip in plan.skips:
                warn(f"left out: {skip.what}: {skip.reason}")
            planned = list(plan.entries)
        shown = [
            _profile(entry, session, top, trace if entry is planned[0] else None)
            for entry in planned
        ]
    return ExitCode.FINE if any(shown) else ExitCode.NOTHING


def _stored(named: str, run: str, results: Path, *, must_be_case: bool) -> Case | None:
    """The case that an id means; ``None`` for what looks like a model.

    Args:
        named: The argument.
        run: The stored run.
        results: Folder of runs.
        must_be_case: Whether the model is named elsewhere, so only a case can be meant.

    Raises:
        UsageError: for what can only be the id of a case, and the run lacks it or can't be read.
    """
    if named.startswith(SCHEMES) or "/" not in named or Path(named).exists():
        return None
    try:
        cases = {result.case.case_id: result.case for result in load_run(run, results).cases}
    except (UsageError, DocumentError):
        if must_be_case or _is_case_id(named):
            raise
        return None
    case = cases.get(named)
    if case is None and (must_be_case or _is_case_id(named)):
        raise UsageError(
            f"the run {run!r} has no case {named!r}",
            hint=did_you_mean(
                named,
                cases,
                f"If you mean a case of another run, write --run={results}/RUN, where RUN is the "
                "folder of that run",
            ),
        )
    return case


def _is_case_id(text: str) -> bool:
    """Whether it is built as ``model/precision/provider/b1``, and is no path to a model file."""
    return text.count("/") >= 3 and not text.startswith((".", "/", "~")) and not Path(text).suffix


def _planned_again(stored: Case, given: TrustedOptions, session: Session) -> list[Planned]:
    """The stored case as this project plans it.

    Raises:
        UsageError: if it needs what neither the project nor the command line gives.
    """
    root = session.root
    request = request_of(stored, given, root, {*families(root), *project_catalogue(root)})
    again = choose_case(stored, session.plan(request), given, root)
    for note in again.notes:
        warn(f"note: {note}")
    return [again.planned]


def _profile(planned: Planned, session: Session, top: int, trace: Path | None) -> bool:
    """Print the profile of one case; return whether there is one."""
    case = planned.case
    step(case.case_id)
    try:
        profile = profile_case(session.prepare(planned), session.launcher, trace)
    except WorkerError as error:
        failure = error.failure
        warn(f"{case.case_id}: {failure.kind}: {failure.message}")
        if failure.hint:
            warn(f"  {failure.hint}")
        return False
    lines = profile_lines(case.case_id, profile, top=top, width=width(), encoding=encoding())
    say("\n".join(lines))
    return bool(profile.operators)
