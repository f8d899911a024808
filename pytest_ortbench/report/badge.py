"""A badge: the fastest variant of a model as a shields endpoint (https://shields.io/badges)."""

from __future__ import annotations

import json

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.sentences import with_interval
from pytest_ortbench.core.errors import UsageError, did_you_mean
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
