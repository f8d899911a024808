"""``ortbench accuracy``: where a variant of a model goes wrong, node by node."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.analysis.floors import slices_words
from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say, step, table, warn
from pytest_ortbench.core.case import Runtime, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.node_error import beginning_of
from pytest_ortbench.launch.reference import reference_case
from pytest_ortbench.models.extent import extent_of
from pytest_ortbench.models.ort_file import is_ort_file
from pytest_ortbench.planning.axes import parse_dims
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.report.extent import extent_words
from pytest_ortbench.schema.model_questions import CompareNodes
from pytest_ortbench.session import Session

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.node_error import NodeError, NodeErrors

_TIMEOUT_S = 1800.0


@click.command(
    epilog=epilog(
        "ortbench accuracy model.onnx --precision=int8-static",
        "ortbench accuracy builtin:resnet50 --precision=fp16 --top=5",
        "ortbench accuracy bert.onnx --precision=int8-dynamic --dims=seq:128",
    )
)
@click.argument("model", metavar="MODEL")
@click.option(
    "--precision",
    required=True,
    metavar="NAME",
    help="A precision, a recipe of the project, or a variant of the model that you provide.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=20, show_default=True, help="Nodes shown."
)
@click.option(
    "--samples", type=click.IntRange(min=1), default=3, show_default=True, help="Input sets."
)
@click.option(
    "--inputs",
    type=click.Path(path_type=Path, exists=True),
    help="Real inputs, as --ort-inputs takes them.",
)
@click.option("--dims", metavar="NAME:V", multiple=True, help="Sizes of symbolic dimensions.")
def command(
    model: str, precision: str, top: int, samples: int, inputs: Path | None, dims: tuple[str, ...]
) -> int:
    """List the nodes of MODEL by the signal to noise ratio of their outputs, worst first, and name
    the one at which the error begins.

    The file of the precision and the model's own (or its named reference) run on the CPU, without
    graph optimisation and on the same inputs. Values with the same name in both graphs are
    compared; channels that are much smaller than the others are compared separately. The error
    begins at the node whose outputs are much less accurate than its inputs: exclude it in a recipe.
    """
    with Session(Path.cwd(), notify=step) as session:
        request = PlanRequest(
            models=(model,),
            precisions=(precision,),
            dims=parse_dims(dims, place="--dims") if dims else {},
            inputs=inputs,
            sampling=Sampling(timeout_s=_TIMEOUT_S),
        )
        case, failure = _prepared(session, request)
        if failure or case is None:
            warn(f"ortbench: {failure}")
            return ExitCode.NOTHING
        step(f"comparing {case.model.name} in {precision}")
        try:
            question = CompareNodes(case=case, right=reference_case(case), samples=samples)
            deadline = time.monotonic() + case.sampling.timeout_s
            errors = session.launcher.ask(question, deadline=deadline, runtime=Runtime())
        except WorkerError as error:
            warn(f"ortbench: {error}")
            return ExitCode.NOTHING
    _show(case, errors, top)
    return ExitCode.FINE if any(node.compared for node in errors.nodes) else ExitCode.NOTHING


def _prepared(session: Session, request: PlanRequest) -> tuple[Case | None, str]:
    """The first case of a request with its file, or why there is none."""
    (model,), (precision,) = request.models, request.precisions
    plan = session.plan(request)
    if not plan.entries:
        return None, f"{model} has no variant {precision!r}"
    planned = plan.entries[0]
    if planned.refusal is not None:
        return None, planned.refusal.message
    right = reference_case(planned.case).model.path
    if any(is_ort_file(Path(path)) for path in (planned.case.variant.path, right)):
        return None, f"{model}: the nodes of a file in ONNX Runtime's own format can't be compared"
    if planned.conversion is None:
        return planned.case, ""
    step(f"making {precision} of {planned.case.model.name}")
    try:
        return session.prepare(planned), ""
    except WorkerError as error:
        return None, str(error)


def _show(case: Case, errors: NodeErrors, top: int) -> None:
    ordered = sorted(errors.nodes, key=_badness)
    rows = [
        [
            node.node,
            node.op_type,
            _ratio(node),
            f"{node.max_abs:.3g}" if node.compared else "",
            str(node.nonfinite or ""),
        ]
        for node in ordered[:top]
    ]
    sets = "1 input set" if errors.samples == 1 else f"{errors.samples} input sets"
    against = case.model.reference.name if case.model.reference else f"{case.model.name} as it is"
    say(
        f"{case.model.name} in {case.variant.precision} compared with {against}, {sets}, worst "
        "first"
    )
    header = ["node", "operator", "SQNR", "largest error", "NaN or infinite"]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    say(table(rows, header=header))
    rest = len(ordered) - len(rows)
    if rest:
        say(f"and {rest} better {'one' if rest == 1 else 'ones'}")
    for line in _beginning(errors):
        say(line)
    broken = [node.node for node in errors.nodes if node.reference_nan]
    if broken:
        say(
            f"the reference itself gives NaN, first at {broken[0]!r} (in {len(broken)} of "
            f"{len(errors.nodes)} nodes): only its numbers are compared; check its weights "
            "and its inputs"
        )
    if case.model.random_ops:
        say(
            f"the graph draws random numbers ({', '.join(case.model.random_ops)}): what these "
            "nodes make, and what is computed from it, says nothing about the precision"
        )
    if errors.unmatched:
        have = "1 node has" if errors.unmatched == 1 else f"{errors.unmatched} nodes have"
        say(f"{have} no value in the variant: it fused or replaced them")
    if errors.inner:
        stand = "1 node stands" if errors.inner == 1 else f"{errors.inner} nodes stand"
        say(
            f"{stand} inside branches of If or bodies of loops and can't be compared one by one: "
            "what they do shows in the outputs of the node around them"
        )
    extent = _extent(case)
    if extent:
        say(f"before and after: {extent}")
    for note in case.variant.notes:
        say(note)


def _extent(case: Case) -> str:
    """Size and counts of the model's own file, and of the variant."""
    from dataclasses import replace

    sizes = {spec.name: spec.shape for spec in case.inputs}
    made, own = case.variant, case.model
    before = replace(
        made, path=own.path, size_bytes=own.size_bytes, extent=extent_of(Path(own.path), sizes)
    )
    return extent_words(replace(made, extent=extent_of(Path(made.path), sizes)), before)


def _beginning(errors: NodeErrors) -> list[str]:
    """Name the node at which the error begins, and the entry of a recipe that leaves it out."""
    found = beginning_of(errors)
    if found is None:
        return []
    node = found.node
    kept = f"{node.nonfinite} NaN or infinite values" if node.nonfinite else _ratio(node)
    return [
        f"the error begins at {node.node!r} ({node.op_type}): its inputs keep "
        f"{found.read_db:.1f} dB or more, its outputs {kept}",
        f"to leave it in float, write nodes_to_exclude = [{json.dumps(node.node)}] into a recipe "
        "([tool.ortbench.precisions.NAME] in pyproject.toml)",
    ]


def _ratio(node: NodeError) -> str:
    kept = node.kept_db
    if kept is not None:
        where = ""
        if node.slices is not None and kept != node.sqnr_db:
            where = f" in {slices_words(node.slices)}"
        return f"{kept:.1f} dB{where}"
    if node.nonfinite:
        return ""
    if node.reference_nan:
        return "NaN on both sides"
    return "exact" if node.compared else "not compared"


def _badness(node: NodeError) -> tuple[bool, bool, float]:
    """Nodes with NaN first, then those without a pair of numbers, by noise, and exact ones."""
    kept = node.kept_db
    noise = 1e9 if kept is None else kept
    return (not node.nonfinite, node.compared > 0, noise)
