"""What a single value of a run document may be: numbers by their unit, words by their list.

The unit stands in a field's name, so it decides for most of them; what follows another rule is
listed once, in :data:`BOUNDS`.
"""

from __future__ import annotations

from functools import lru_cache

from pytest_ortbench.core.case import (
    ROLES,
    SIZE_ORIGINS,
    Case,
    Provider,
    Sampling,
    SessionConfig,
    SymbolSize,
)
from pytest_ortbench.core.certificate import LINE_VERDICTS, CheckLine
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
from pytest_ortbench.core.links import IDLE_CAUSES, LinkPlacement
from pytest_ortbench.core.mantissa import FLOAT32_BITS
from pytest_ortbench.core.model import Model, SubnormalWeight, ValueHint
from pytest_ortbench.core.outcome import (
    CACHE_STATES,
    FAILURE_KINDS,
    PHASES,
    CaseResult,
    Failure,
    Flag,
    Measurement,
    Memory,
    OutputAccuracy,
    OutputCheck,
    Placement,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.run import SHARD_STATES, Canary, Run, Shard
from pytest_ortbench.core.samples import PERCENTS, OrderStatistic, Samples
from pytest_ortbench.core.yardstick import ABSENCES, YARDSTICKS, Yardstick, YardstickTurns
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.schema.bound_kinds import (
    ANY,
    COUNT,
    LARGEST_FLOAT,
    NAME,
    NANOSECONDS,
    RISE,
    SAMPLES,
    SHARE,
    WHOLE,
    Bound,
    Numbers,
    Text,
    Words,
)

#: By the end of a field's name, the first that fits; a number without one of these is a count if it
#: is whole, and any finite number if it is not.
UNITS: dict[str, Numbers] = {
    "_per_s": Numbers(0, 1e18),
    "_ns": NANOSECONDS,
    "_s2": Numbers(0, 1e15),
    "_s": Numbers(0, 1e10),
    "seconds": Numbers(0, 1e10),
    "_bytes": Numbers(0, 2**60),
    "steal_ratio": SHARE,
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
REQUESTED: tuple[type, ...] = (
    Case,
    Sampling,
    SessionConfig,
    SymbolSize,
    *(entry.load(kind) for entry in PASSES for kind in entry.requested),
)

#: What differs from the rule of the unit, by type and field.
BOUNDS: dict[tuple[type, str], Bound] = {
    (Run, "run_id"): NAME,
    (Run, "expected"): Numbers(0, 10**9),
    (Shard, "state"): Words(SHARD_STATES),
    (CheckLine, "verdict"): Words(tuple(LINE_VERDICTS)),
    (Canary, "durations_ns"): Numbers(1, 2**53),
    (Case, "seed"): WHOLE,
    (Provider, "role"): Words(ROLES),
    (SymbolSize, "size"): WHOLE,
    (SymbolSize, "origin"): Words(tuple(SIZE_ORIGINS)),
    (Model, "name"): NAME,
    (Model, "opsets"): WHOLE,
    (Model, "ir_version"): WHOLE,
    (SubnormalWeight, "value_share"): SHARE,
    (ValueHint, "low"): ANY,
    (ValueHint, "high"): ANY,
    (CaseResult, "status"): Words(("measured", *FAILURE_KINDS)),
    (LinkPlacement, "idle"): Words(tuple(IDLE_CAUSES)),
    (Placement, "product_bits"): Numbers(0, FLOAT32_BITS),
    (CaseResult, "product_bits"): Numbers(0, FLOAT32_BITS),
    (Failure, "kind"): Words(tuple(FAILURE_KINDS)),
    (Failure, "phase"): Words(tuple(PHASES)),
    (Failure, "exit_code"): Numbers(-(2**32), 2**32),
    (Flag, "name"): Words(tuple(FLAGS)),
    (Measurement, "worker"): Numbers(0, 2**20),
    (Measurement, "overhead_ns"): Numbers(-(2**53), 2**53),
    (Startup, "cache"): Words(CACHE_STATES),
    (WarmUp, "count"): Numbers(0, 10**10),
    (Samples, "count"): SAMPLES,
    (Samples, "stride"): SAMPLES,
    (OrderStatistic, "percent"): Numbers(min(PERCENTS), max(PERCENTS)),
    (Memory, "session_bytes"): RISE,
    (Memory, "after_session_bytes"): RISE,
    (Memory, "peak_bytes"): RISE,
    (Memory, "after_runs_bytes"): RISE,
    (Memory, "device_bytes"): RISE,
    (OutputAccuracy, "max_abs"): Numbers(0, LARGEST_FLOAT),
    (OutputAccuracy, "max_rel"): Numbers(0, LARGEST_FLOAT),
    (OutputAccuracy, "cosine"): Numbers(-1.001, 1.001),
    (OutputCheck, "norm"): Numbers(0, LARGEST_FLOAT),
    (Yardstick, "name"): Words(tuple(YARDSTICKS)),
    (YardstickTurns, "absence"): Words(("", *ABSENCES)),
    (GateResult, "verdict"): Words(tuple(VERDICTS)),
    (GateResult, "model_relation"): Words(("", *MODEL_RELATIONS)),
    (GateResult, "role"): Words(ROLES),
    (GateResult, "baseline_role"): Words(("", *ROLES)),
    (GateResult, "cause"): Words(("", *CAUSES)),
    (ContrastVerdict, "verdict"): Words(tuple(VERDICTS)),
    (ContrastVerdict, "effect"): Numbers(-1, 1e12),
    (ContrastVerdict, "low"): Numbers(-1, 1e12),
    (ContrastVerdict, "high"): Numbers(-1, 1e12),
    (ContrastVerdict, "margin"): Numbers(0, 1e6),
    (ContrastVerdict, "detectable"): Numbers(0, 1e12),
    (ContrastVerdict, "p"): SHARE,
    (MetricVerdict, "verdict"): Words(tuple({**METRIC_VERDICTS, **VERDICTS})),
    (GateFinding, "slack"): Numbers(0, LARGEST_FLOAT),
    (PairedLaunch, "seed"): WHOLE,
    **{
        field: bound
        for entry in PASSES
        if entry.bounds
        for field, bound in entry.load(entry.bounds).items()
    },
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
