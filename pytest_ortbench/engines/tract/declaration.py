"""tract: a library in Rust, which computes on one thread."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="tract",
    title="tract",
    target="pytest_ortbench.engines.tract.worker:Tract",
    distributions=("tract",),
)
