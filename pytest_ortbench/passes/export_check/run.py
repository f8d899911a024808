"""The check of an export on the host's side: the file answers first, then its source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, Provider, Runtime, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.nearness import NEAR_DB
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.launch.native_text import readable
from pytest_ortbench.launch.reference import reference_case
from pytest_ortbench.passes.export_check.facts import CheckedSizes, ExportCheck, FirstDifference
from pytest_ortbench.passes.export_check.numbers.evidence import spread_decides
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.rounding import inner_near_db
from pytest_ortbench.passes.export_check.planning import (
    SizedInputs,
    has_source,
    other_fixed_sizes,
    sizes_to_check,
)
from pytest_ortbench.passes.export_check.questions import (
    AskFile,
    AskSource,
    FileAnswered,
    FindFirstDifference,
    SizeChoice,
    SizeTrial,
    SourceAnswered,
    SourcePart,
)
from pytest_ortbench.schema.model_questions import MeasureSpread

#: Input sets of the usual sizes, and of each other choice.
_SETS, _SETS_OF_OTHERS = 8, 2


def measure(result: CaseResult, means: Means) -> ExportCheck:
    """Hold an exported model against its source, once for all cases of the model.

    Raises:
        WorkerError: if a worker fails.
    """
    case = result.case
    if not has_source(case):
        return ExportCheck(reason="the model was not exported from code in this run")
    known = next(
        (
            other.export_check
            for other in means.results
            if other.export_check is not None
            and not other.export_check.interrupted
            and other.case.model.digest == case.model.digest
            and other.case.model.exported_from == case.model.exported_from
        ),
        None,
    )
    return _checked(case, means) if known is None else known


def _checked(case: Case, means: Means) -> ExportCheck:
    source = case.model.exported_from
    assert source is not None
    kind = engine_kind(source.framework)
    if kind is None:
        return ExportCheck(
            framework=source.framework,
            reason=f"no package here runs models of {source.framework!r}",
        )
    sized = sizes_to_check(case)
    choices = tuple(
        SizeChoice(inputs=entry.inputs, samples=_SETS_OF_OTHERS if entry.changed else _SETS)
        for entry in sized
    )
    launcher, timeout_s = means.launcher, case.sampling.timeout_s
    right = replace(
        reference_case(replace(case, model=replace(case.model, reference=None))),
        inputs=sized[0].inputs,
        expected=(),
        dataset=None,
    )
    with OwnFolder("export") as folder:
        path, inner = str(folder / "answers.npz"), str(folder / "inner.npz")
        file = launcher.ask(
            AskFile(case=right, choices=choices, path=path),
            deadline=time.monotonic() + timeout_s,
        )
        if case.model.decoder is not None and not file.samples[0]:
            # Windows of a fixed length want a buffer, which onnxruntime-genai gives them.
            return ExportCheck(
                framework=source.framework,
                reason="the file does not read a prompt with an empty cache: "
                f"{readable(file.reasons[0])}",
            )
        provider = Provider(alias=kind.alias, name=kind.title, role="framework")
        framework_case = replace(
            case,
            provider=provider,
            runtime=_runtime(case, means.others),
            inputs=sized[0].inputs,
            session=SessionConfig(),
            sessions=1,
            concurrency=1,
            call="sync",
            io="end-to-end",
            generation=None,
        )
        deadline = time.monotonic() + timeout_s
        with closing(launcher.open(framework_case, worker=0, deadline=deadline)) as worker:
            answered = worker.ask(
                AskSource(
                    path=path,
                    choices=choices,
                    samples=file.samples,
                    trials=tuple(
                        SizeTrial(fixed=fixed, inputs=inputs)
                        for fixed, inputs in other_fixed_sizes(case, sized[0].inputs)
                    ),
                    near_db=NEAR_DB,
                    inner=inner,
                )
            )
        check = ExportCheck(
            framework=source.framework,
            version=answered.version,
            choices=_named(sized, file, answered),
            fixed=answered.fixed,
            confusions=answered.confusions,
            repeats=answered.repeats,
            rebuilds=answered.rebuilds,
            again_reason=answered.again_reason,
        )
        if spread_decides(check):
            check = replace(check, spread=_spread(launcher, right, path))
        is_far = any(fault.worst is not None for fault in export_faults(check, case.model))
        # Outputs in the wrong place differ by no node.
        if is_far and not check.confusions:
            first = (
                _first_difference(launcher, right, inner, answered.parts, check)
                if answered.parts
                else FirstDifference(reason=f"{kind.title} tells no values from inside its model")
            )
            check = replace(check, first_difference=first)
    return check


def _spread(launcher: Launcher, right: Case, path: str) -> ReferenceSpread:
    """Return how far the file is from itself, or why it could not be run again."""
    question = MeasureSpread(case=right, reference=path)
    try:
        return launcher.ask(question, deadline=time.monotonic() + right.sampling.timeout_s)
    except WorkerError as error:
        return ReferenceSpread(reason=error.failure.told or error.failure.kind)


def _first_difference(
    launcher: Launcher, right: Case, inner: str, parts: tuple[SourcePart, ...], check: ExportCheck
) -> FirstDifference:
    """Return the first node that differs, or why it can't be known."""
    question = FindFirstDifference(
        case=right, path=inner, parts=parts, near_db=inner_near_db(check, right.model)
    )
    try:
        return launcher.ask(question, deadline=time.monotonic() + right.sampling.timeout_s)
    except WorkerError as error:
        return FirstDifference(reason=error.failure.told or error.failure.kind)


def _named(
    sized: Sequence[SizedInputs], file: FileAnswered, answered: SourceAnswered
) -> tuple[CheckedSizes, ...]:
    return tuple(
        replace(choice, sizes=entry.sizes, changed=entry.changed, file_reason=readable(reason))
        for choice, entry, reason in zip(answered.choices, sized, file.reasons, strict=True)
    )


def _runtime(case: Case, others: Sequence[Case]) -> Runtime:
    """Where the framework runs: as its rows of this run do, else as the case."""
    source = case.model.exported_from
    frameworks = [
        other.runtime
        for other in others
        if other.provider.role == "framework" and other.model.exported_from == source
    ]
    return frameworks[0] if frameworks else case.runtime
