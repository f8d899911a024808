"""PyTorch with TorchScript: a module is traced or scripted, a program is taken as it is."""

from __future__ import annotations

import warnings

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.torch.worker.eager import Eager
from pytest_ortbench.engines.torch.worker.program import Program

#: By method, the option that avoids it; a program that was loaded is frozen only.
_IN_ANOTHER_WAY = {"trace": "method=script", "script": "method=trace", "load": "freeze=0"}


class Scripted(Eager):
    """A program in TorchScript."""

    alias = "torch-script"

    def compile(self) -> int | None:
        """Trace or script the module at the sizes of the case, and freeze it."""
        import torch

        method, frozen = self._method(), self.task.options.get("freeze", "1") != "0"
        with warnings.catch_warnings(), torch.no_grad(), self._autocast():
            warnings.simplefilter("ignore")  # of values that a trace takes for constants
            try:
                if method == "script":
                    self.called = torch.jit.script(self.called)
                elif method == "trace":
                    arguments, keywords = self.example()
                    self.called = torch.jit.trace(
                        self.called,
                        example_inputs=None if keywords else tuple(arguments),
                        example_kwarg_inputs=keywords or None,
                        check_trace=False,
                        strict=False,
                    )
                if frozen and hasattr(self.called, "training"):
                    self.called = torch.jit.freeze(self.called.eval())
            except (RuntimeError, TypeError, torch.jit.frontend.FrontendError) as error:
                raise EngineRefusal(
                    f"torch.jit.{method} can't convert the model. {says('It', first_line(error))}",
                    hint="Try it in another way: --ort-provider-option=torch-script."
                    f"{_IN_ANOTHER_WAY[method]}",
                ) from error
        return None

    def in_force(self) -> dict[str, str]:
        """Return the settings, and how the program came about."""
        freeze = self.task.options.get("freeze", "1")
        return super().in_force() | {"method": self._method(), "freeze": freeze}

    def _method(self) -> str:
        """How the program comes about: ``trace``, ``script``, or ``load`` for one in a file."""
        if self._built().is_scripted:
            return "load"
        method = self.task.options.get("method", "trace")
        if method not in ("trace", "script"):
            raise EngineRefusal(
                f"method={method} is not a method of TorchScript",
                kind="error",
                hint="Write method=trace or method=script",
            )
        return method

    def _program(self) -> Program:
        return self.sourced()
