"""A badge: the fastest variant of a model as a shields endpoint (https://shields.io/badges)."""

from __future__ import annotations

import json

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.sentences import with_interval
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.escape import one_line

#: Shields' colour words: a plain fact, one that a flag blurs, and none at all.
_PLAIN, _BLURRED, _NONE = "blue", "yellow", "lightgrey"


def render_badge(run: Run, model: str) -> str:
    """Write the JSON that shields.io reads for a badge of one model.

    The message is the fastest variant at the smallest batch size with its p50 and interval, as in
    the answer; a tie or a blurring flag is said.

    Args:
        run: Any run.
        model: Name of one of its models.

    Raises:
        UsageError: if the run has no such model.
    """
    found = [answer for answer in answers(run) if answer.model == model]
    if not found:
        known = {result.case.model.name for result in run.cases}
        raise UsageError(
            f"{model!r} is not a model of this run",
            place="badge",
            hint=did_you_mean(model, map(one_line, known)),
        )
    fastest = next((answer.fastest[0] for answer in found if answer.fastest), None)
    message, colour = "not ranked", _NONE
    if fastest is not None:
        tie = ", a tie" if fastest.ties else ""
        message = f"{fastest.label} {with_interval(fastest.quantity)}{tie}"
        colour = _BLURRED if fastest.blurred_by else _PLAIN
    return json.dumps(
        {
            "schemaVersion": 1,
            "label": one_line(model),
            "message": one_line(message),
            "color": colour,
        },
        ensure_ascii=False,
    )


def render_case_badge(run: Run, case_id: str, metric: str) -> str:
    """Write the JSON that shields.io reads for a badge of one number of one case.

    A number that must not be ranked is not shown; a flag that blurs it turns the badge yellow.

    Args:
        run: Any run.
        case_id: Id of one of its cases; of several runtimes the first.
        metric: Name of a metric.

    Raises:
        UsageError: if the run has no such case, or there is no such metric.
    """
    if metric not in METRICS:
        raise UsageError(
            f"{metric!r} is not a metric", place="--metric", hint=did_you_mean(metric, METRICS)
        )
    found = [result for result in run.cases if result.case.case_id == case_id]
    if not found:
        known = {result.case.case_id for result in run.cases}
        raise UsageError(
            f"{case_id!r} is not a case of this run",
            place="badge",
            hint=did_you_mean(case_id, map(one_line, known)),
        )
    summary = summarise(found[0])
    severities = {FLAGS[flag.name].severity for flag in summary.flags if flag.name in FLAGS}
    quantity = summary.quantities.get(metric)
    message, colour = summary.missing.get(metric, "not measured"), _NONE
    if found[0].failure is not None:
        message = found[0].failure.kind
    if quantity is not None and "bars" in severities:
        message = "not ranked"
    elif quantity is not None:
        message = with_interval(quantity)
        colour = _BLURRED if "blurs" in severities else _PLAIN
    return json.dumps(
        {
            "schemaVersion": 1,
            "label": one_line(f"{case_id} {metric.replace('_', ' ')}"),
            "message": one_line(message),
            "color": colour,
        },
        ensure_ascii=False,
    )
