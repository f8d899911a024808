"""PyTorch with torch.compile, compiled at the sizes of the case before its first inference."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import class_and_line, says
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.torch.worker.eager import Eager


class Compiled(Eager):
    """A model that torch.compile made into kernels of its own."""

    alias = "torch-compile"

    def load(self) -> str:
        """Import ``torch``; what is compiled is kept in the folder of the task."""
        if self.task.folder is not None:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self.task.folder / "inductor")
            os.environ["TRITON_CACHE_DIR"] = str(self.task.folder / "triton")
        else:
            os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        return super().load()

    def compile(self) -> int | None:
        """Compile the model: one call at the sizes of the case, values zero."""
        import torch

        options = self.task.options
        try:
            compiled = torch.compile(
                self.called,
                mode=options.get("mode"),
                backend=options.get("backend", "inductor"),
                dynamic=False,
            )
            arguments, keywords = self.example()
            with torch.inference_mode(), self._autocast():
                compiled(*arguments, **keywords)
        except (RuntimeError, ImportError) as error:
            raise EngineRefusal(
                f"torch.compile can't compile the model. {says('PyTorch', class_and_line(error))}",
                hint=f"{self._step_to_compile()}. To measure the model without torch.compile, "
                f"write torch in place of {self.alias} in --ort-providers",
            ) from error
        finally:
            _end_compile_workers()
        self.called = compiled
        return _size(self.task.folder)

    def _step_to_compile(self) -> str:
        """What may make it compile: what PyTorch lacks, or another setting."""
        chosen = [
            f"--ort-provider-option={self.alias}.{key}={self.task.options[key]}"
            for key in ("mode", "backend")
            if key in self.task.options
        ]
        install = "If PyTorch names a compiler or a package that is missing, install it"
        return f"{install}. If not, correct {' and '.join(chosen)}" if chosen else install

    def in_force(self) -> dict[str, str]:
        """Return the settings, and into how many graphs the model fell."""
        from torch._dynamo.utils import counters

        options = self.task.options
        chosen = {key: options[key] for key in ("mode", "backend") if key in options}
        graphs = str(counters["stats"]["unique_graphs"])
        return super().in_force() | chosen | {"unique_graphs": graphs}


def _end_compile_workers() -> None:
    """End the processes that compiled: nothing may compute beside what is measured."""
    from torch._inductor import async_compile

    end: Any = getattr(async_compile, "shutdown_compile_workers", None)
    if end is not None:
        end()


def _size(folder: Path | None) -> int | None:
    """Bytes of all that was compiled; ``None`` where it is not kept."""
    if folder is None:
        return None
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
