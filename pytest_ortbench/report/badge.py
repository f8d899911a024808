"""A badge: the fastest variant of a model, or one number of a case.

As a picture of its own (SVG), and as the JSON that shields.io draws one from
(https://shields.io/badges/endpoint-badge).
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from xml.sax.saxutils import escape

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.sentences import with_interval
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.metrics import METRICS, metric_hint
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line

#: Shields' colour words: a plain fact, one that a flag blurs, and none at all.
_PLAIN, _BLURRED, _NONE = "blue", "yellow", "lightgrey"

#: The same as colours that white text can be read on (contrast above 4.5).
_FILLS = {_PLAIN: "#0a58a8", _BLURRED: "#8a4b00", _NONE: "#5f6770"}
_LABEL_FILL = "#3a4149"

#: Pixels of a character of 11 px, roughly; the text is stretched to the sum.
_NARROW = frozenset("ijlItfr.,:;|/[]()!' ")
_NARROW_PX, _USUAL_PX, _WIDE_PX = 4.6, 7.0, 11.5
_PADDING_PX, _HEIGHT_PX = 7, 20
#: Longer texts are cut in the picture; its title has them whole.
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """What a badge says.

    Attributes:
        label: The left half, on one line without control characters.
        message: The right half, likewise.
        colour: A colour word of shields.io.
    """

    label: str
    message: str
    colour: str


def render_json(badge: Badge) -> str:
    """Write the JSON that shields.io reads from an address (its *endpoint* badge)."""
    return json.dumps(
        {
            "schemaVersion": 1,
            "label": badge.label,
            "message": badge.message,
            "color": badge.colour,
        },
        ensure_ascii=False,
    )


def render_svg(badge: Badge) -> str:
    """Draw a badge: one SVG element without scripts, links or fonts from elsewhere."""
    label, message = _cut(badge.label), _cut(badge.message)
    left, right = (_width(text) + 2 * _PADDING_PX for text in (label, message))
    whole = escape(f"{badge.label}: {badge.message}")
    name = escape(f"{badge.label}: {badge.message}", {'"': "&quot;"})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT_PX}" '
        f'role="img" aria-label="{name}">',
        f"<title>{whole}</title>",
        f'<clipPath id="r{left + right}">'
        f'<rect width="{left + right}" height="{_HEIGHT_PX}" rx="3"/></clipPath>',
        f'<g clip-path="url(#r{left + right})">',
        f'<rect width="{left}" height="{_HEIGHT_PX}" fill="{_LABEL_FILL}"/>',
        f'<rect x="{left}" width="{right}" height="{_HEIGHT_PX}" fill="{_FILLS[badge.colour]}"/>',
        "</g>",
        '<g fill="#fff" text-anchor="middle" font-size="11" '
        'font-family="Verdana,DejaVu Sans,Noto Sans,sans-serif">',
        _text(label, left / 2, left - 2 * _PADDING_PX),
        _text(message, left + right / 2, right - 2 * _PADDING_PX),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(text: str, middle: float, length: int) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{length}">{escape(text)}</text>'


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _width(text: str) -> int:
    """Pixels that a text takes, about."""
    wide = (unicodedata.east_asian_width(character) in "WF" for character in text)
    return round(
        sum(
            _WIDE_PX if is_wide else _NARROW_PX if character in _NARROW else _USUAL_PX
            for character, is_wide in zip(text, wide, strict=True)
        )
    )


def model_badge(shown: ShownRun, model: str) -> Badge:
    """Return the badge of one model.

    The message is the fastest variant at the smallest batch size with its p50 and interval, as in
    the answer; a tie or a blurring flag is said.

    Args:
        shown: Any run with the numbers of its cases.
        model: Name of one of its models.

    Raises:
        UsageError: if the run has no such model.
    """
    of_model = [answer for answer in answers(shown.run, shown.summaries) if answer.model == model]
    if not of_model:
        known = {result.case.model.name for result in shown.run.cases}
        raise UsageError(
            f"{model!r} is not a model of this run",
            place="MODEL",
            hint=did_you_mean(model, map(one_line, known)),
        )
    fastest = next((answer.fastest[0] for answer in of_model if answer.fastest), None)
    message, colour = "not ranked", _NONE
    if fastest is not None:
        tie = ", not clearly" if fastest.ties else ""
        message = f"{fastest.label} {with_interval(fastest.quantity)}{tie}"
        colour = _BLURRED if fastest.blurred_by else _PLAIN
    return Badge(label=one_line(model), message=one_line(message), colour=colour)


def case_badge(run: Run, case_id: str, metric: str) -> Badge:
    """Return the badge of one number of one case.

    A number that must not be ranked is not shown; a flag that blurs it turns the badge yellow.

    Args:
        run: Any run.
        case_id: Id of one of its cases; of several runtimes the first.
        metric: Name of a metric.

    Raises:
        UsageError: if the run has no such case, or there is no such metric.
    """
    if metric not in METRICS:
        raise UsageError(f"{metric!r} is not a metric", place="--metric", hint=metric_hint(metric))
    results = [result for result in run.cases if result.case.case_id == case_id]
    if not results:
        known = {result.case.case_id for result in run.cases}
        raise UsageError(
            f"{case_id!r} is not a case of this run",
            place="CASE",
            hint=did_you_mean(case_id, map(one_line, known)),
        )
    summary = summarise(results[0])
    severities = {FLAGS[flag.name].severity for flag in summary.flags if flag.name in FLAGS}
    quantity = summary.quantities.get(metric)
    message, colour = summary.missing.get(metric, "not measured"), _NONE
    if results[0].failure is not None:
        message = results[0].failure.kind
    if quantity is not None and "bars" in severities:
        message = "not ranked"
    elif quantity is not None:
        message = with_interval(quantity)
        colour = _BLURRED if "blurs" in severities else _PLAIN
    return Badge(
        label=one_line(f"{case_id}{results[0].case.provider.role_note} {metric.replace('_', ' ')}"),
        message=one_line(message),
        colour=colour,
    )
