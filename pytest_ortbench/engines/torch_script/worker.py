"""PyTorch with TorchScript: a module is traced or scripted, a program is taken as it is."""

from __future__ import annotations

import warnings

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.torch.worker.eager import Eager
from pytest_ortbench.engines.torch.worker.program import Program

#: By function of torch.jit that failed, the option that avoids it. Who scripts has come to the end.
_IN_ANOTHER_WAY = {"trace": "method=script", "freeze": "freeze=0"}


class Scripted(Eager):
    """A program in TorchScript."""

    alias = "torch-script"

    def compile(self) -> int | None:
        """Trace or script the module at the sizes of the case, and freeze it."""
        import torch

        method, frozen = self._method(), self.task.options.get("freeze", "1") != "0"
        step = method
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
                step = "freeze"
                if frozen and hasattr(self.called, "training"):
                    self.called = torch.jit.freeze(self.called.eval())
            except (RuntimeError, TypeError, torch.jit.frontend.FrontendError) as error:
                raise EngineRefusal(
                    f"torch.jit.{step} can't convert the model. "
                    f"{says('PyTorch', first_line(error))}",
                    hint=f"To do without torch.jit.{step}, write "
                    f"--ort-provider-option={self.alias}.{_IN_ANOTHER_WAY[step]}"
                    if step in _IN_ANOTHER_WAY
                    else "To measure the model without TorchScript, write torch in place of "
                    f"{self.alias} in --ort-providers",
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
                f"method={method} is not a method that makes a TorchScript program",
                kind="error",
                hint=f"Write --ort-provider-option={self.alias}.method=trace, or script in place "
                "of trace",
            )
        return method

    def _program(self) -> Program:
        return self.sourced()
