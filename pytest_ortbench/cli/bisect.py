"""``ortbench bisect``: the first runtime on which a model got worse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog, require_model, words_for_pytest
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.patterned import refuse_unfitting
from pytest_ortbench.gate.measuring.bisect import bisect_runtimes, is_worse
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.resolution import check_margins
from pytest_ortbench.gate.numbers.rules import parse_rules, rules_for
from pytest_ortbench.gate.numbers.sentences import verdict_line
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.axes import split_list
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.runtimes.releases import expand_range
from pytest_ortbench.session import Session

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case, Runtime
    from pytest_ortbench.gate.measuring.bisect import Bisected

_PLACE = "--runtimes"


@click.command(
    epilog=epilog(
        "ortbench bisect --runtimes=onnxruntime==1.20.1..1.32.0 model.onnx",
        "ortbench bisect --runtimes=onnxruntime==1.20.1,onnxruntime==1.24.1 zoo:silero-vad",
    )
)
@click.argument("model", metavar="MODEL")
@click.option(
    "--runtimes",
    required=True,
    metavar="SPEC",
    help="A range of releases, NAME==1.20.1..1.32.0, or runtimes in order.",
)
@click.option("--limits", metavar="LIMITS", multiple=True, help="As for --ort-gate of pytest.")
@click.option("--threads", type=click.IntRange(min=1), help="Intra-op threads.")
def command(model: str, runtimes: str, limits: tuple[str, ...], threads: int | None) -> int:
    """Find the first runtime in which MODEL became slower, larger, less accurate or worse placed.

    Each step measures the first runtime and another one in turns, and halves the range that is
    left. In the end both sides of the change are profiled, and the operators that account for it
    are shown. Environments that do not exist yet are made.
    """
    rules = parse_rules(split_list(limits, place="--limits"), place="--limits")
    machine = fingerprint()
    with OwnFolder("bisect") as folder, Session(Path.cwd(), notify=warn) as session:
        specs = _specs(runtimes)
        require_model(model)
        chosen, launcher = _chosen(session, specs), session.launcher
        case = _case(session, model, threads, specs)
        refuse_unfitting(rules, [case.case_id], place="--limits")
        chosen_rules = rules_for(case.case_id, rules)
        check_margins({case.case_id: chosen_rules.margin}, place="--limits")
        bisected = bisect_runtimes(
            case,
            chosen,
            lambda: Gate(launcher=launcher, machine=machine, cases=1, scratch=folder),
            chosen_rules,
        )
        _tell(bisected, chosen)
        if bisected.first_bad is not None:
            before, after = chosen[bisected.last_good], chosen[bisected.first_bad]
            for entry in PASSES:
                if entry.explain_change:
                    explain_change = entry.load(entry.explain_change)
                    say("\n".join(explain_change(case, before, after, launcher)))
    if bisected.first_bad is not None:
        return ExitCode.LIMIT_FAILED
    return ExitCode.NOTHING if _undecided(bisected) else ExitCode.FINE


def _specs(text: str) -> Sequence[str]:
    """What the text of the option names, in order.

    Raises:
        UsageError: if it is one runtime.
    """
    specs = expand_range(text, place=_PLACE) or split_list((text,), place=_PLACE)
    if len(specs) < 2:
        older = "onnxruntime==1.20.1" if text == "current" else text
        raise UsageError(
            f"{text!r} names one runtime, but a bisection needs two or more",
            place=_PLACE,
            hint="Write the older runtime, then the newer one, e.g. "
            f"{in_shell([f'{_PLACE}={older},current'])}, or a range of versions, e.g. "
            "--runtimes=onnxruntime==1.20.1..1.32.0",
        )
    return specs


def _chosen(session: Session, specs: Sequence[str]) -> tuple[Runtime, ...]:
    chosen = session.choose_runtimes(specs, place=_PLACE)
    for label, failure in chosen.failures.items():
        warn(f"note: {label} is left out: {failure.message}")
    usable = tuple(runtime for runtime in chosen.runtimes if runtime.label not in chosen.failures)
    if len(usable) < 2:
        raise UsageError(
            "a bisection needs two runtimes that start, but "
            + (f"only {usable[0].label!r} starts" if usable else "none of them starts"),
            place=_PLACE,
            hint="The notes above say why a runtime does not start. Correct the cause, or name "
            "other versions, e.g. --runtimes=onnxruntime==1.20.1..1.32.0",
        )
    return usable


def _case(session: Session, model: str, threads: int | None, specs: Sequence[str]) -> Case:
    request = PlanRequest(models=(model,), threads=() if threads is None else (threads,))
    entries = session.plan(request).entries
    if len(entries) != 1:
        paths = list(dict.fromkeys(entry.case.model.path for entry in entries))
        raise UsageError(
            f"{model!r} gives {len(entries)} cases, but a bisection measures one",
            place="MODEL",
            hint=f"Name one model file, e.g. {paths[0]}"
            if len(paths) > 1
            else "A model with several cases can't be bisected. To measure all of them with the "
            f"first and the last runtime, run 'pytest {in_shell(words_for_pytest(model))} "
            f"{in_shell([f'--ort-runtimes={specs[0]},{specs[-1]}'])}'",
        )
    refusal = entries[0].refusal
    if refusal is not None:
        raise UsageError(refusal.message, place=model, hint=refusal.hint)
    return entries[0].case


def _undecided(bisected: Bisected) -> bool:
    """Whether it could not be told that the last runtime is as good as the first."""
    return is_worse(bisected.results[max(bisected.results)]) is None


def _tell(bisected: Bisected, runtimes: Sequence[Runtime]) -> None:
    for index, result in bisected.results.items():
        say(f"{runtimes[0].label} -> {runtimes[index].label}: {verdict_line(result)}")
    if bisected.first_bad is None:
        last = max(bisected.results)
        word = "shows no clear difference from" if _undecided(bisected) else "is as good as"
        say(f"{runtimes[last].label} {word} {runtimes[0].label}")
        return
    say(f"worse since {runtimes[bisected.first_bad].label}")
    say(f"{runtimes[bisected.last_good].label} is still as good as {runtimes[0].label}")
    for index in bisected.undecided:
        say(f"no verdict on {runtimes[index].label}")
    for text in bisected.results[bisected.first_bad].failures:
        say(f"  {text}")
