"""What a single value of a run document may be: numbers by their unit, words by their list.

The unit stands in a field's name, so it decides for most of them; what follows another rule is
listed once, in :data:`BOUNDS`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from pytest_ortbench.core.case import SIZE_ORIGINS, Case, Sampling, SessionConfig, SymbolSize
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.gate import (
    CAUSES,
    METRIC_VERDICTS,
    MODEL_RELATIONS,
    VERDICTS,
    ContrastVerdict,
    GateFinding,
    GateResult,
    MetricVerdict,
    PairedLaunch,
)
from pytest_ortbench.core.model import Model, ValueHint
from pytest_ortbench.core.outcome import (
    FAILURE_KINDS,
    PHASES,
    CaseResult,
    Failure,
    Flag,
    Measurement,
    Memory,
    OutputAccuracy,
    OutputCheck,
    WarmUp,
)
from pytest_ortbench.core.run import Canary, Run
from pytest_ortbench.core.samples import PERCENTS, OrderStatistic, Samples
from pytest_ortbench.passes.energy.facts import EnergyWindow
from pytest_ortbench.passes.load.facts import LoadSpec, LoadTest
from pytest_ortbench.passes.startup.facts import StartTrial
from pytest_ortbench.passes.task.facts import TaskAccuracy

#: The largest float of 64 bits: what is beyond it is infinite.
LARGEST_FLOAT = 1.7976931348623157e308
#: The largest integer of 64 bits.
LARGEST_INT = 2**63 - 1
#: The longest text. Native messages are the longest that we write, and are cut long before.
LONGEST_TEXT = 1_000_000
#: The longest name: a path can't be longer.
LONGEST_NAME = 4096


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"must lie between {_spelt(self.low)} and {_spelt(self.high)}"


@dataclass(frozen=True, slots=True)
class Words:
    """One of some words."""

    known: Collection[str]

    def __str__(self) -> str:
        return f"must be one of {', '.join(map(repr, self.known))}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of up to so many characters."""

    longest: int = LONGEST_TEXT

    def __str__(self) -> str:
        return f"must have {self.longest:,} characters at most"


Bound: TypeAlias = "Numbers | Words | Text"

COUNT = Numbers(0, LARGEST_INT)
ANY = Numbers(-LARGEST_FLOAT, LARGEST_FLOAT)
_WHOLE = Numbers(-LARGEST_INT - 1, LARGEST_INT)
_NAME = Text(LONGEST_NAME)
_RISE = Numbers(-(2**60), 2**60)
_FROM_ONE = Numbers(1, LARGEST_INT)
_SHARE = Numbers(0, 1)
#: Inferences of one worker. Their order statistics take the root of that many steps.
_SAMPLES = Numbers(1, 10**10)
#: Sums of scores, whose squares are computed.
_SCORES = Numbers(-1e150, 1e150)
#: Longest time in nanoseconds: 104 days, and exact in the numbers of every JSON reader.
_NS = Numbers(0, 2**53)

#: By the end of a field's name, the first that fits; a number without one of these is a count if it
#: is whole, and any finite number if it is not.
UNITS: dict[str, Numbers] = {
    "_per_s": Numbers(0, 1e18),
    "_ns": _NS,
    "_s2": Numbers(0, 1e15),
    "_s": Numbers(0, 1e10),
    "seconds": Numbers(0, 1e10),
    "_bytes": Numbers(0, 2**60),
    "steal_ratio": _SHARE,
    "_ratio": Numbers(0, 1e6),
    "_j": Numbers(0, 1e15),
    "_w": Numbers(0, 1e9),
    "_c": Numbers(-273.15, 1e4),
    "_mhz": Numbers(0, 1e6),
    "_db": Numbers(-1e3, 1e4),
    "cpus": Numbers(0, 2**20),
}

#: Types of what was asked for. Options have their own limits, and whatever passed them may be
#: asked: nothing is computed of it in reading.
REQUESTED: tuple[type, ...] = (Case, Sampling, SessionConfig, SymbolSize, LoadSpec)

#: What differs from the rule of the unit, by type and field.
BOUNDS: dict[tuple[type, str], Bound] = {
    (Run, "run_id"): _NAME,
    (Run, "expected"): Numbers(0, 10**9),
    (Canary, "durations_ns"): Numbers(1, 2**53),
    (Case, "seed"): _WHOLE,
    (SymbolSize, "size"): _WHOLE,
    (SymbolSize, "origin"): Words(tuple(SIZE_ORIGINS)),
    (Model, "name"): _NAME,
    (Model, "opsets"): _WHOLE,
    (Model, "ir_version"): _WHOLE,
    (ValueHint, "low"): ANY,
    (ValueHint, "high"): ANY,
    (CaseResult, "status"): Words(("measured", *FAILURE_KINDS)),
    (Failure, "kind"): Words(tuple(FAILURE_KINDS)),
    (Failure, "phase"): Words(tuple(PHASES)),
    (Failure, "exit_code"): Numbers(-(2**32), 2**32),
    (Flag, "name"): Words(tuple(FLAGS)),
    (Measurement, "worker"): Numbers(0, 2**20),
    (Measurement, "overhead_ns"): Numbers(-(2**53), 2**53),
    (WarmUp, "count"): Numbers(0, 10**10),
    (Samples, "count"): _SAMPLES,
    (Samples, "stride"): _SAMPLES,
    (OrderStatistic, "percent"): Numbers(min(PERCENTS), max(PERCENTS)),
    (Memory, "session_bytes"): _RISE,
    (Memory, "after_session_bytes"): _RISE,
    (Memory, "peak_bytes"): _RISE,
    (Memory, "after_runs_bytes"): _RISE,
    (Memory, "device_bytes"): _RISE,
    (OutputAccuracy, "max_abs"): Numbers(0, LARGEST_FLOAT),
    (OutputAccuracy, "max_rel"): Numbers(0, LARGEST_FLOAT),
    (OutputAccuracy, "cosine"): Numbers(-1.001, 1.001),
    (OutputCheck, "norm"): Numbers(0, LARGEST_FLOAT),
    (EnergyWindow, "inferences"): Numbers(0, 1e15),
    (EnergyWindow, "duration_ns"): Numbers(1, 2**53),
    (LoadSpec, "percent"): Numbers(0, 100),
    (LoadTest, "stride"): _FROM_ONE,
    (StartTrial, "page_cache"): Words(("cold", "warm")),
    (StartTrial, "engines"): Words(("none", "cold", "warm")),
    (StartTrial, "resident"): _SHARE,
    (TaskAccuracy, "largest"): Numbers(0, 1e150),
    (TaskAccuracy, "score_sum"): _SCORES,
    (TaskAccuracy, "reference_sum"): _SCORES,
    (TaskAccuracy, "difference_squares"): Numbers(0, 1e300),
    (GateResult, "verdict"): Words(tuple(VERDICTS)),
    (GateResult, "model_relation"): Words(("", *MODEL_RELATIONS)),
    (GateResult, "cause"): Words(("", *CAUSES)),
    (ContrastVerdict, "verdict"): Words(tuple(VERDICTS)),
    (ContrastVerdict, "effect"): Numbers(-1, 1e12),
    (ContrastVerdict, "low"): Numbers(-1, 1e12),
    (ContrastVerdict, "high"): Numbers(-1, 1e12),
    (ContrastVerdict, "margin"): Numbers(0, 1e6),
    (ContrastVerdict, "detectable"): Numbers(0, 1e12),
    (ContrastVerdict, "p"): _SHARE,
    (MetricVerdict, "verdict"): Words(tuple({**METRIC_VERDICTS, **VERDICTS})),
    (GateFinding, "slack"): Numbers(0, LARGEST_FLOAT),
    (PairedLaunch, "seed"): _WHOLE,
}


@lru_cache(maxsize=4096)
def bound_of(kind: type, field: str, value: type) -> Bound:
    """Return what a value of a field may be.

    Args:
        kind: The data type that has the field.
        field: Its name.
        value: ``int``, ``float`` or ``str``: that of the value, or of the values in it.
    """
    own = BOUNDS.get((kind, field))
    if own is not None:
        return own
    if value is str:
        return Text()
    if kind in REQUESTED:
        return COUNT if value is int else Numbers(0, LARGEST_FLOAT)
    for end, numbers in UNITS.items():
        if field.endswith(end):
            return numbers
    return COUNT if value is int else ANY


def _spelt(number: float) -> str:
    if number < 0:
        return f"-{_spelt(-number)}"
    names = {LARGEST_FLOAT: "1.8e308", LARGEST_INT: "2^63 − 1"}
    if number in names:
        return names[number]
    if isinstance(number, int) and number > 9999 and number & (number - 1) == 0:
        return f"2^{number.bit_length() - 1}"
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
