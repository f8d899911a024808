"""What a run suggests to do next, from its evidence alone: fields decide, and words explain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pytest_ortbench.analysis.candidates import speed_metric
from pytest_ortbench.analysis.in_turns import (
    is_disturbed,
    is_incomparable,
    threads_in_turns,
    turns_to_take,
)
from pytest_ortbench.analysis.inaccuracy import ACCURACY
from pytest_ortbench.analysis.judgements import is_barred
from pytest_ortbench.analysis.next_step import NextStep
from pytest_ortbench.analysis.other_precisions import precision_to_try
from pytest_ortbench.analysis.steadiness import WARM_UP
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.analysis.thread_counts import CHOSEN
from pytest_ortbench.core.case import Key
from pytest_ortbench.core.flags import ONE_WORKER
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import format_amount, significant

#: Suggestions of one run.
MOST = 3

#: An interval that is wider than this share of its value leaves much open.
_WIDE = 0.25

#: Processes that are suggested at most, and how many times the present number.
_MOST_WORKERS, _TIMES = 12, 2

#: Processes that show how far processes differ.
_ENOUGH_WORKERS = 3

#: How many times the seconds of a case that could not be warmed up in them.
_LONGER = 4

#: How much smaller a file gets.
_SIZES = {"fp16": "half", "int8-static": "a quarter", "int8-dynamic": "a quarter"}

#: A gate makes sense where a number is known about as well as what it is to find.
_GATED = 0.1

#: Inferences that are quicker leave little to find in a profile by node.
_PROFILED_S = 0.005

#: Models with fewer weights gain nothing from another precision.
_LEAST_WEIGHTS = 100_000

#: Files beside a model that hold real inputs by convention.
_BESIDE = ("{stem}.npz", "{stem}_inputs.npz", "inputs.npz", "test_data_set_0")


def next_steps(
    run: Run,
    summaries: Sequence[Summary],
    *,
    chosen: Collection[str],
    is_stored: bool,
    is_profiled_again: bool,
    too_slow: Collection[Key] = (),
) -> tuple[NextStep, ...]:
    """Return at most three suggestions, those first that say most about the numbers at hand.

    Args:
        run: A finished run.
        summaries: One for each of its cases, in their order.
        chosen: Flags of the options that the user has set.
        is_stored: Whether the run can be found again.
        is_profiled_again: Whether the console tool plans its cases as this run did.
        too_slow: Cases beyond a limit on their speed.
    """
    members = [
        (result, summary)
        for result, summary in zip(run.cases, summaries, strict=True)
        if summary.status == "measured" and result.measurements
    ]
    if not members:
        return ()
    slow = [pair for pair in members if pair[0].case.key in too_slow]
    # More of a number that is barred all the same helps nobody.
    ranked = [pair for pair in members if not is_barred(pair[0], pair[1].judgements)]
    sound = [pair for pair in members if not is_incomparable(pair[1])]
    steps = [
        *(_profile(slow, least_s=0.0) if is_profiled_again else ()),
        *(
            _enough_workers(ranked)
            or turns_to_take(sound, chosen)
            or _idle(sound)
            or _time(members)
            or _workers(ranked, chosen)
        ),
        *_accuracy(members),
        *_inputs(members, chosen),
        # A gate asks whether a change is worse, not which other variant there may be.
        *(_threads(members, chosen) if not run.gate else ()),
        *(_profile(members) if is_profiled_again and not slow else ()),
        *(_precision(members, chosen) if not run.gate else ()),
        *(_gate(run, members, chosen) if is_stored else ()),
    ]
    return tuple(steps[:MOST])


_Members = list[tuple[CaseResult, Summary]]


def _enough_workers(members: _Members) -> list[NextStep]:
    """Several processes, where one measured a case of which more were asked, or that has rivals."""
    single = [
        result
        for result, summary in members
        if any(flag.name == ONE_WORKER for flag in summary.flags)
    ]
    if not single:
        return []
    result = single[0]
    sampling, asked = result.case.sampling, result.case.sampling.workers
    if asked == 1 and len(members) == 1:
        return []
    workers = max(asked, _ENOUGH_WORKERS)
    options = {"--ort-workers": str(workers)}
    if result.budget is not None:
        # It decided on the workers, and is refused beside their number.
        options["--ort-budget"] = "none"
    elif asked > 1:
        # The first one ended in time, so that as many as are asked for end in so many times that.
        options["--ort-timeout"] = f"{sampling.timeout_s * workers:g}"
    else:
        options["--ort-time"] = f"{sampling.time_s * workers / asked:g}"
    return [
        NextStep(
            kind="workers",
            why=f"{result.case.case_id} was measured in one worker process, which does not show "
            "how far processes differ",
            options=options,
        )
    ]


def _idle(members: _Members) -> list[NextStep]:
    """The same again on an idle machine, where other work made an interval wide.

    More processes beside the same work would tell more of that work.
    """
    disturbed = [
        (width, result, summary)
        for result, summary in members
        if (width := _width(summary)) is not None and width > _WIDE and is_disturbed(summary)
    ]
    if not disturbed:
        return []
    width, result, summary = max(disturbed, key=lambda entry: entry[0])
    got = "" if summary.lacked is None else f", and its process had {summary.lacked.words}"
    return [
        NextStep(
            kind="idle",
            why=f"other programs ran while {result.case.case_id} was measured{got}; end them, and "
            "measure again",
        )
    ]


def _time(members: _Members) -> list[NextStep]:
    """More seconds for each process, where too few samples tell nothing of the warm-up."""
    cold = [
        result
        for result, summary in members
        if any(entry.of == WARM_UP and entry.is_unjudged for entry in summary.judgements)
    ]
    if not cold:
        return []
    result = max(cold, key=lambda entry: entry.case.sampling.time_s)
    options = {"--ort-time": f"{result.case.sampling.time_s * _LONGER:g}"}
    if result.budget is not None:
        options["--ort-budget"] = "none"
    return [
        NextStep(
            kind="time",
            why=f"{result.case.case_id} had too few samples to tell whether it was warm",
            options=options,
        )
    ]


def _accuracy(members: _Members) -> Iterator[NextStep]:
    """The nodes of a converted file whose answers are wrong."""
    for result, summary in members:
        case = result.case
        is_wrong = any(entry.of == ACCURACY and entry.is_bad for entry in summary.judgements)
        if (
            is_wrong
            and case.variant.recipe
            and case.model.place
            and case.generation is None
            and case.model.exported_from is None
            and case.provider.is_execution_provider
            and not case.model.is_made
        ):
            yield NextStep(
                kind="accuracy",
                why=f"{case.case_id} is INACCURATE; which node the error begins at",
                wrong=case,
            )
            return


def _workers(members: _Members, chosen: Collection[str]) -> Iterator[NextStep]:
    """More processes and seconds, where an interval is wide."""
    if "--ort-budget" in chosen:
        return  # it decides on both
    widths = [(_width(summary), result) for result, summary in members]
    known = [(width, result) for width, result in widths if width is not None]
    if not known:
        return
    width, result = max(known, key=lambda pair: pair[0])
    sampling = result.case.sampling
    workers = min(_MOST_WORKERS, _TIMES * sampling.workers)
    if width > _WIDE and workers > sampling.workers:
        yield NextStep(
            kind="workers",
            why=f"the interval of {result.case.case_id} is {_width_words(width)} its value",
            options={
                "--ort-workers": str(workers),
                "--ort-time": f"{sampling.time_s * workers / sampling.workers:g}",
            },
        )


def _width_words(width: float) -> str:
    """Say how wide an interval is beside its value: ``34 % of``, ``7.3 times``."""
    return f"{100 * width:.0f} % of" if width < 1 else f"{significant(width, 2)} times"


def _inputs(members: _Members, chosen: Collection[str]) -> Iterator[NextStep]:
    """Real inputs that lie beside the model, where drawn ones alone have judged."""
    if {"--ort-inputs", "--ort-dataset"} & set(chosen):
        return
    drawn = [result for result, summary in members if summary.on_drawn_inputs]
    paths = {result.case.model.path for result, _ in members}
    if not drawn or len(paths) > 1:
        return
    model = Path(drawn[0].case.model.path)
    for name in _BESIDE:
        file = model.with_name(name.format(stem=model.stem))
        if drawn[0].case.model.place and file.exists():
            yield NextStep(
                kind="inputs",
                why=f"accuracy was judged on random inputs, and {file.name} lies beside the model",
                options={"--ort-inputs": str(file)},
            )
            return


def _threads(members: _Members, chosen: Collection[str]) -> Iterator[NextStep]:
    """One thread beside the default, where nobody chose a number."""
    if "--ort-threads" in chosen:
        return
    for result, summary in members:
        case, first = result.case, result.measurements[0]
        if (
            case.provider.is_execution_provider
            and case.provider.computes_on_host
            and "threads" not in case.knobs
            and first.threads > 1
            and first.threads_source != CHOSEN
        ):
            yield NextStep(
                kind="threads",
                why=f"{first.threads} threads are the default here; small models are often "
                "faster with one",
                options=threads_in_turns(1)
                if is_disturbed(summary) and "--ort-against" not in chosen
                else {"--ort-threads": f"1,{first.threads}"},
            )
            return


def _profile(members: _Members, *, least_s: float = _PROFILED_S) -> Iterator[NextStep]:
    """The nodes of the case that takes longest, if it takes so long."""
    candidates = [
        (summary.quantities[speed_metric(result.case)].value, result)
        for result, summary in members
        if speed_metric(result.case) in summary.quantities and _can_be_planned_again(result)
    ]
    if not candidates:
        return
    seconds, result = max(candidates, key=lambda pair: pair[0])
    if seconds >= least_s and result.profile is None:
        yield NextStep(
            kind="profile",
            why=f"which nodes take the {format_amount(seconds, 's')} of {result.case.case_id}",
            case_id=result.case.case_id,
        )


def _can_be_planned_again(result: CaseResult) -> bool:
    """Whether a case is planned again without what the user said besides its id."""
    case = result.case
    return (
        case.generation is None
        and case.provider.is_execution_provider
        and not any(link.options or link.library for link in case.provider.links)
        and case.runtime.label == "current"
        and not case.session.custom_ops
        and not case.session.entries
        and not any(spec.path for spec in case.inputs)
        and not case.model.is_made
        and case.model.exported_from is None
    )


def _precision(members: _Members, chosen: Collection[str]) -> Iterator[NextStep]:
    """Another precision, where only the file as it is was measured."""
    if "--ort-precisions" in chosen:
        return
    cases = [result.case for result, _ in members]
    if any(case.variant.precision != "native" or case.generation is not None for case in cases):
        return
    if any(
        case.model.weight_types.get("float", 0) < _LEAST_WEIGHTS or case.model.is_made
        for case in cases
    ):
        return
    suiting = {precision_to_try(case) for case in cases}
    if len(suiting) > 1 or "" in suiting:
        return  # what suits one of them is slower for another
    (other,) = suiting
    yield NextStep(
        kind="precision",
        why=f"all weights are fp32; in {other} they take about {_SIZES[other]} of the size",
        options={"--ort-precisions": f"fp32,{other}"},
    )


def _gate(run: Run, members: _Members, chosen: Collection[str]) -> Iterator[NextStep]:
    """A gate against this run, where its numbers are good enough for one."""
    if {"--ort-against", "--ort-baseline"} & set(chosen) or len(members) < len(run.cases):
        return
    widths = [_width(summary) for _, summary in members]
    if any(width is None or width > _GATED for width in widths):
        return
    if any(is_barred(result, summary.judgements) for result, summary in members):
        return
    if any(result.case.model.is_made for result, _ in members):
        return
    yield NextStep(
        kind="gate",
        why="the intervals are narrow enough to hold later runs against this one",
        options={"--ort-baseline": run.run_id},
    )


def _width(summary: Summary) -> float | None:
    """Return how wide the interval of a case is, as a share of its value."""
    quantity = summary.quantities.get(speed_metric(summary.case))
    if quantity is None or quantity.low is None or quantity.high is None or not quantity.value:
        return None
    return (quantity.high - quantity.low) / quantity.value
