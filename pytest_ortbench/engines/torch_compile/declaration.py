"""PyTorch with torch.compile: the first call compiles, which is timed apart."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.torch.declaration import OPTIONS

ENGINE = EngineKind(
    alias="torch-compile",
    title="PyTorch (torch.compile)",
    target="pytest_ortbench.engines.torch_compile.worker:Compiled",
    is_framework=True,
    runs=("torch",),
    distributions=("torch",),
    source="a C++ compiler on the PATH",
    takes_device=True,
    options={
        **OPTIONS,
        "mode": "default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs",
        "backend": "inductor by default, or another one that torch.compile knows",
    },
)
