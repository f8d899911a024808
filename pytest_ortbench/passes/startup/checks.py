"""What single values of starts may be."""

from __future__ import annotations

from pytest_ortbench.passes.startup.facts import StartTrial
from pytest_ortbench.schema.bound_kinds import SHARE, Bound, Words

BOUNDS: dict[tuple[type, str], Bound] = {
    (StartTrial, "page_cache"): Words(("cold", "warm")),
    (StartTrial, "engines"): Words(("none", "cold", "warm")),
    (StartTrial, "resident"): SHARE,
}
