"""JAX: what jaxonnxruntime makes of the ONNX file, compiled by XLA."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="jax",
    title="JAX",
    target="pytest_ortbench.engines.jax.worker:Jax",
    # jaxonnxruntime imports the last two, and asks pip for neither.
    distributions=("jax", "jaxonnxruntime", "absl-py", "chex"),
    takes_device=True,
)
