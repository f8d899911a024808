"""How much worse a contender may be: the grammar of ``--ort-gate``, and what holds without it.

::

    latency:3%                      slower by 3 % or more is a regression
    peak_rss:2%+1MiB                larger by more than both of them is worse
    accuracy_cosine:>=0.999         an absolute limit, in the grammar of all limits
    sides_sqnr >= 40 dB             how near the contender's answers must be to the baseline's
    resnet*@latency:5%              only for cases whose id the pattern matches
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.limits import Limit, parse_limit
from pytest_ortbench.core.metrics import METRICS, SIDE_METRICS, metric_hint
from pytest_ortbench.core.patterned import fitting
from pytest_ortbench.core.units import FACTORS, format_amount, parse_amount
from pytest_ortbench.passes.registry import PASSES

#: What people call the gated latency; the paired gate decides it by floor or typical contrast.
LATENCY = "latency"
#: Metrics of the answers to what was fed, and of those to labelled data.
OF_ANSWERS = ("accuracy_max_abs", "accuracy_cosine", "accuracy_sqnr", "accuracy_top1")
OF_LABELS = tuple(metric.name for entry in PASSES if entry.judge_labels for metric in entry.metrics)
#: Metrics of timed units that are no inferences: of two sides that are measured in turns.
OF_UNITS = tuple(metric for entry in PASSES if entry.unit for metric, _ in entry.unit.gated)
#: Metrics that may be gated by how much worse they got. Other times vary too much between runs,
#: and the tail of a latency varies most: they have absolute limits only.
RELATIVE = (
    LATENCY,
    "peak_rss",
    "process_peak_rss",
    "session_rss",
    "cpu_utilisation",
    "device_memory",
    "model_size",
    "placement",
    "time_on_provider",
    *OF_ANSWERS,
    *OF_LABELS,
    *OF_UNITS,
)

_ITEM = re.compile(
    r"(?:(?P<pattern>[^@]*)@)?(?P<metric>[A-Za-z_][A-Za-z0-9_]*)\s*:?\s*(?P<rest>.*)"
)
_EXAMPLE = (
    "Write e.g. 'latency:3%', if a model may become 3 % slower, or 'placement:>=95%' for a "
    "minimum. For models whose name begins with bert, write 'bert*@latency:3%'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How much worse a metric may be: by the larger of a share and an amount.

    Attributes:
        share: Of the baseline's value.
        amount: In the metric's unit.
        chosen: Whether the user set it.
    """

    share: float = 0.0
    amount: float = 0.0
    chosen: bool = False

    def of(self, baseline: float) -> float:
        """Return what is allowed on top of (or below) a baseline's value."""
        if math.isinf(baseline):  # an exact result's signal to noise ratio
            return self.amount
        return max(self.share * abs(baseline), self.amount)

    def text(self, metric: str) -> str:
        """For people: ``2 % or 1.05 MB, whichever is more``."""
        unit = METRICS[metric].unit if metric in METRICS else "1"
        parts = [format_amount(self.share, "ratio")] if self.share or not self.amount else []
        parts += [format_amount(self.amount, unit)] if self.amount else []
        return " or ".join(parts) + (", whichever is more" if len(parts) > 1 else "")


#: Seen: peaks of one model differ by 4 to 12 kB between launches, so that 2 % is far outside.
#: The file's size does not vary at all; placement and accuracy have limits of their own.
DEFAULTS: dict[str, Allowance] = {
    "peak_rss": Allowance(share=0.02, amount=2.0**20),
    "device_memory": Allowance(share=0.02, amount=2.0**20),
    "model_size": Allowance(share=0.02),
    "placement": Allowance(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One item of ``--ort-gate``.

    Attributes:
        pattern: Which cases, by id; empty for all.
        metric: Name of the metric, or ``latency``.
        allowance: How much worse it may be, or
        limit: what it must keep whatever the baseline has.
        text: As the user wrote it.
    """

    pattern: str
    metric: str
    allowance: Allowance | None = None
    limit: Limit | None = None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRules:
    """What holds for one case.

    Attributes:
        margin: Smallest slowdown that matters, as the user set it; ``None`` for the profile's.
        allowances: By metric, the defaults among them.
        limits: Absolute ones.
        answers: How near the answers of the two sides must be, by metric.
    """

    margin: float | None = None
    allowances: dict[str, Allowance] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    answers: dict[str, Limit] = field(default_factory=dict)


def parse_rules(texts: Iterable[str], *, place: str) -> tuple[Rule, ...]:
    """Read the items of ``--ort-gate``.

    Raises:
        UsageError: if form, metric, number or unit is wrong.
    """
    return tuple(_parse(text.strip(), place) for text in texts if text.strip())


def refuse_rules_of_sides(rules: Iterable[Rule], *, place: str) -> None:
    """Refuse floors for the answers of two sides where no two sides answer in one run.

    Raises:
        UsageError: for the first.
    """
    for rule in rules:
        if rule.metric in OF_UNITS and rule.allowance is not None:
            raise UsageError(
                f"{rule.text!r} compares the times of two runs, but times differ from run to run "
                "without a cause in the model",
                place=place,
                hint="Measure the old and the new state in one run of pytest, e.g. with "
                f"{_in_one_run(rule)}. To set an absolute limit instead, write e.g. "
                f"{_as_limit(rule.metric, place)}",
            )
        if rule.metric in SIDE_METRICS:
            raise UsageError(
                f"{rule.text!r} compares outputs of two sides, but a stored run has no outputs",
                place=place,
                hint="Measure both sides in one run of pytest, e.g. with "
                f"{_in_one_run(rule)}. To limit the error against the model's reference "
                "instead, write e.g. "
                f"{_typed('accuracy_sqnr:>=40 dB', place)}",
            )


def _in_one_run(rule: Rule) -> str:
    """What measures both sides in one run with a rule."""
    return f"--ort-against=git:main {_typed(rule.text, '--ort-gate')}"


def refuse_idle_sides(rules: Iterable[Rule], *, place: str) -> list[str]:
    """Refuse floors of the command line for answers of two sides that a stored run has not.

    Args:
        rules: What was asked for.
        place: Where it stands.

    Returns:
        What is to be said of rules of an ini file, which may be meant for another run.

    Raises:
        UsageError: for one of the command line.
    """
    try:
        refuse_rules_of_sides(rules, place=place)
    except UsageError as error:
        if place.startswith("-"):
            raise
        return [str(error)]
    return []


def rules_for(case_id: str, rules: Sequence[Rule], case_ids: Collection[str] = ()) -> CaseRules:
    """Return which rules hold for one case; a later one replaces an earlier one of its metric.

    Rules with a pattern win over those without, wherever they stand.

    Args:
        case_id: The case.
        rules: All of them.
        case_ids: See :func:`~pytest_ortbench.core.patterned.fitting`.
    """
    ordered = sorted(fitting(rules, case_id, case_ids), key=lambda rule: bool(rule.pattern))
    allowances = dict(DEFAULTS)
    limits: dict[tuple[str, str], Limit] = {}
    for rule in ordered:
        if rule.allowance is not None:
            allowances[rule.metric] = rule.allowance
        if rule.limit is not None:
            limits[rule.metric, rule.limit.op[0]] = rule.limit
    margin = allowances.pop(LATENCY, None)
    return CaseRules(
        margin=None if margin is None else margin.share,
        allowances=allowances,
        limits=tuple(limit for limit in limits.values() if limit.metric.name not in SIDE_METRICS),
        answers={name: limit for (name, _), limit in limits.items() if name in SIDE_METRICS},
    )


#: A margin that a latency may have, too.
_SHARE = re.compile(r"\d+(\.\d+)?\s*%")
#: An amount of each unit, for messages.
_AMOUNTS = {
    "s": "200 ms",
    "bytes": "500 MiB",
    "1/s": "100/s",
    "W": "50 W",
    "J": "10 mJ",
    "ratio": "99 %",
    "dB": "40 dB",
}


def _as_limit(metric: str, place: str) -> str:
    """Return how an absolute limit on a metric is written: at most, or at least."""
    described = {**METRICS, **SIDE_METRICS}[metric]
    sign = ">=" if described.better == "higher" else "<="
    return _typed(f"{metric}:{sign}{_AMOUNTS.get(described.unit, '1')}", place)


def _typed(rule: str, place: str) -> str:
    """Return a rule as it is typed where the user wrote one: a shell takes < and > as its own."""
    return f"{place}='{rule}'" if place.startswith("-") else rule


def _parse(text: str, place: str) -> Rule:
    match = _ITEM.fullmatch(text)
    if match is None or not match["rest"]:
        raise UsageError(f"{text!r} is not a limit of a gate", place=place, hint=_EXAMPLE)
    metric, rest = match["metric"], match["rest"].strip()
    if metric not in METRICS and metric != LATENCY and metric not in SIDE_METRICS:
        raise UsageError(
            f"{metric!r} in {text!r} is not a metric",
            place=place,
            hint=metric_hint(metric, (LATENCY, *SIDE_METRICS)),
        )
    rule = Rule(pattern=(match["pattern"] or "").strip(), metric=metric, text=text)
    if metric in SIDE_METRICS:
        return replace(rule, limit=_of_answers(metric, rest, text, place))
    if rest[0] in "<>=":
        name = "latency_p50" if metric == LATENCY else metric
        return replace(rule, limit=parse_limit(f"{name} {rest}", place=place))
    if metric == "latency_p50":
        rule, metric = replace(rule, metric=LATENCY), LATENCY
    if metric not in RELATIVE:
        share = rest if _SHARE.fullmatch(rest) else "3%"
        raise UsageError(
            f"{metric!r} in {text!r} can't have a limit relative to the baseline",
            place=place,
            hint=f"Write an absolute limit, e.g. {_as_limit(metric, place)}. To gate slowdowns, "
            f"write {_typed(f'{LATENCY}:{share}', place)}",
        )
    return replace(rule, allowance=_allowance(metric, rest, text, place))


def _of_answers(metric: str, written: str, text: str, place: str) -> Limit:
    """A floor for the answers of the two sides; nothing else makes sense of them."""
    if written[0] != ">":
        raise UsageError(
            f"{text!r} is not a minimum, but {metric} can have a minimum only",
            place=place,
            hint=f"Write e.g. {_as_limit(metric, place)}",
        )
    return parse_limit(f"{metric} {written}", place=place, metrics=SIDE_METRICS)


def _allowance(metric: str, written: str, text: str, place: str) -> Allowance:
    unit = "ratio" if metric == LATENCY else METRICS[metric].unit
    share = amount = 0.0
    for part in written.split("+"):
        if part.strip().endswith("%"):
            share = parse_amount(part, "ratio", place=place, of=metric)
        elif metric == LATENCY or unit == "ratio":
            raise UsageError(
                f"{part.strip()!r} in {text!r} is not a percentage",
                place=place,
                hint=f"Write e.g. {_typed(f'{metric}:3%', place)}"
                + (
                    f". For an absolute limit, write e.g. {_as_limit('latency_p50', place)}"
                    if metric == LATENCY
                    else ""
                ),
            )
        else:
            known = unit if unit in FACTORS else "1"
            amount = parse_amount(part, known, place=place, of=metric)
    if share < 0 or amount < 0:
        raise UsageError(
            f"the margin in {text!r} is below 0",
            place=place,
            hint=f"Write how much worse {metric} may become, e.g. "
            + _typed(f"{metric}:{written.replace('-', '')}", place),
        )
    if share >= 10:
        raise UsageError(
            f"the margin in {text!r} is not below 1000 %",
            place=place,
            hint=f"Write e.g. {_typed(f'{metric}:3%', place)}",
        )
    if metric == LATENCY and not share:
        raise UsageError(
            f"the margin in {text!r} is 0",
            place=place,
            hint="Write a margin above 0, e.g. 3%. Two measurements are never exactly equal",
        )
    return Allowance(share=share, amount=amount, chosen=True)
