"""What single values of starts may be."""

from __future__ import annotations

from pytest_ortbench.core.outcome import CACHE_STATES
from pytest_ortbench.passes.startup.facts import StartTrial
from pytest_ortbench.schema.bound_kinds import SHARE, Bound, Words

BOUNDS: dict[tuple[type, str], Bound] = {
    (StartTrial, "page_cache"): Words(("cold", "warm")),
    (StartTrial, "engines"): Words(CACHE_STATES),
    (StartTrial, "resident"): SHARE,
}
