"""Records the output of each module of a PyTorch model, to locate where an export differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from pytest_ortbench.engines.seam import InnerValue

#: What is kept altogether; what modules give after that is left out.
_MOST_BYTES = 256 * 1024**2


def values_of_modules(model: Any, run: Callable[[], object]) -> tuple[InnerValue, ...]:
    """Run a model, and return the output of each of its modules, in the order of their ends.

    Of several outputs the first counts. A module that is called more than once gives none, since
    nothing in a file says which call a node belongs to.

    Args:
        model: A module.
        run: Calls it.
    """
    import torch

    kept: dict[str, InnerValue] = {}
    calls: Counter[str] = Counter()
    size = 0

    def hook_of(path: str) -> Callable[..., None]:
        def keep(module: Any, _inputs: object, output: Any) -> None:
            nonlocal size
            calls[path] += 1
            value = output[0] if isinstance(output, tuple | list) and output else output
            if not isinstance(value, torch.Tensor) or not value.is_floating_point():
                return
            size += value.numel() * value.element_size()
            if size <= _MOST_BYTES:
                array = value.detach().to("cpu", torch.float32, copy=True).numpy()
                kept[path] = InnerValue(path=path, kind=type(module).__name__, value=array)

        return keep

    handles = [
        module.register_forward_hook(hook_of(path)) for path, module in model.named_modules()
    ]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return tuple(inner for path, inner in kept.items() if calls[path] == 1)
