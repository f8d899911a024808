"""PyTorch with TorchScript: a program that was traced or scripted, then frozen."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.torch.declaration import OPTIONS

ENGINE = EngineKind(
    alias="torch-script",
    title="PyTorch (TorchScript)",
    target="pytest_ortbench.engines.torch_script.worker:Scripted",
    is_framework=True,
    runs=("torch",),
    distributions=("torch",),
    takes_device=True,
    options={
        **OPTIONS,
        "method": "how a module becomes a program: trace (by default) or script",
        "freeze": "1 (default) makes its weights constants, 0 does not",
    },
)
