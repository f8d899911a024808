"""``ortbench profile``: where the time of an inference goes, and what bounds it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.terminal import ExitCode, encoding, say, step, warn, width
from pytest_ortbench.core.errors import DocumentError, UsageError, WorkerError, did_you_mean

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.launch.launcher import Launcher
    from pytest_ortbench.plan.matrix import Planned


@click.command(
    epilog=epilog(
        "ortbench profile model.onnx",
        "ortbench profile builtin:resnet50 --providers=cpu,cuda --batch-sizes=8 --top=5",
        "ortbench profile resnet50/native/cpu/b1 --trace=trace.json",
    )
)
@click.argument("what", metavar="MODEL|CASE")
@click.option("--providers", metavar="SPEC", default="cpu", show_default=True, help="Where.")
@click.option("--precisions", metavar="SPEC", default="native", show_default=True, help="How.")
@click.option("--batch-sizes", metavar="N,N", default="1", show_default=True, help="Batch axis.")
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
    help="Keep the Chrome trace of the profiled run here (of the first case, if there are more).",
)
@click.option("--run", "run", metavar="RUN", default="latest", help="The run that CASE stands in.")
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
    results: Path,
) -> int:
    """Profile MODEL (a file, builtin:NAME, zoo:NAME), or a CASE of a stored run by its id.

    A run of its own, with ONNX Runtime's profiler on: its times are no benchmark.
    """
    from pytest_ortbench.launch.launcher import ProcessLauncher

    if trace is not None and not trace.absolute().parent.is_dir():
        raise UsageError(
            f"--trace={trace}: there is no folder {trace.absolute().parent}",
            hint="Make it first, or name a file in one that exists",
        )
    launcher = ProcessLauncher()
    with closing(launcher):
        stored = _stored(what, run, results)
        if stored is not None:
            from pytest_ortbench.plan.matrix import Planned

            planned = [Planned(case=stored)]
        else:
            planned = _planned(
                what, launcher, providers=providers, precisions=precisions,
                batch_sizes=batch_sizes, dims=dims, threads=threads,
            )  # fmt: skip
        shown = [_profile(each, launcher, top, trace if each is planned[0] else None)
                 for each in planned]  # fmt: skip
    return ExitCode.FINE if any(shown) else ExitCode.NOTHING


def _stored(what: str, run: str, results: Path) -> Case | None:
    """The case that an id means; ``None`` for what looks like a model.

    Raises:
        UsageError: for what can only be the id of a case, and the run lacks it or can't be read.
    """
    if what.startswith(("builtin:", "zoo:")) or "/" not in what or Path(what).exists():
        return None
    try:
        cases = {result.case.case_id: result.case for result in load_run(run, results).cases}
    except (UsageError, DocumentError):
        if _is_case_id(what):
            raise
        return None
    case = cases.get(what)
    if case is None and _is_case_id(what):
        raise UsageError(
            f"the run {run} has no case {what!r}",
            hint=did_you_mean(what, cases, "Name another run with --run, or the model"),
        )
    if case is not None and not Path(case.variant.path).exists():
        raise UsageError(
            f"the file of {what} is gone: {case.variant.path}", hint="Name the model instead"
        )
    return case


def _is_case_id(what: str) -> bool:
    """Whether it is built as ``model/precision/provider/b1``, and is no path to a model file."""
    return what.count("/") >= 3 and not what.startswith((".", "/", "~")) and not Path(what).suffix


def _planned(
    what: str,
    launcher: Launcher,
    *,
    providers: str,
    precisions: str,
    batch_sizes: str,
    dims: tuple[str, ...],
    threads: str,
) -> list[Planned]:
    """The cases of a model."""
    from pytest_ortbench.core.case import Runtime
    from pytest_ortbench.engine.planning import Planner
    from pytest_ortbench.plan.axes import parse_dims, parse_int_list, split_list
    from pytest_ortbench.plan.providers import split_specs
    from pytest_ortbench.plan.request import PlanRequest

    planner = Planner(launcher, Path.cwd(), runtimes=[Runtime()], notify=warn)
    request = PlanRequest(
        models=(what,),
        providers=tuple(split_specs((providers,), place="--providers")),
        precisions=tuple(split_list(precisions, place="--precisions")),
        batch_sizes=parse_int_list(batch_sizes, place="--batch-sizes"),
        dims=parse_dims(dims, place="--dims") if dims else {},
        threads=parse_int_list(threads, place="--threads") if threads else (),
    )
    plan = planner.plan(request)
    for skip in plan.skips:
        warn(f"left out: {skip.what}: {skip.reason}")
    return list(plan.entries)


def _profile(planned: Planned, launcher: Launcher, top: int, trace: Path | None) -> bool:
    """Print the profile of one case; return whether there is one."""
    from pytest_ortbench.engine.passes import profile_case
    from pytest_ortbench.engine.variants import VARIANTS_FOLDER, Variants
    from pytest_ortbench.report.operator_profile import profile_lines
    from pytest_ortbench.zoo.cache import cache_folder

    case = planned.case
    step(case.case_id)
    try:
        if planned.refusal is not None:
            raise WorkerError(planned.refusal)
        if planned.conversion is not None:
            variants = Variants(launcher=launcher, folder=cache_folder() / VARIANTS_FOLDER)
            case = variants.prepare(case, planned.conversion)
        profile = profile_case(case, launcher, trace)
    except WorkerError as error:
        failure = error.failure
        warn(f"{case.case_id}: {failure.kind}: {failure.message}")
        if failure.hint:
            warn(f"  {failure.hint}")
        return False
    lines = profile_lines(case.case_id, profile, top=top, width=width(), encoding=encoding())
    say("\n".join(lines))
    return bool(profile.operators)
