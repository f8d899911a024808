"""What is advised where PyTorch can't make a TorchScript program."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.torch_script.worker import Scripted


@pytest.mark.parametrize(
    ("method", "step"), [("trace", "torch-script.method=script"), ("script", "--ort-providers")]
)
def test_the_steps_for_a_trace_and_a_script_form_no_circle(
    monkeypatch: pytest.MonkeyPatch, method: str, step: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError("no such type")

    jit = SimpleNamespace(
        trace=refuse, script=refuse, frontend=SimpleNamespace(FrontendError=ValueError)
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(jit=jit, no_grad=nullcontext))
    made: Any = object.__new__(Scripted)
    made.task = SimpleNamespace(options={})
    made.called = object()
    monkeypatch.setattr(Scripted, "_method", lambda _: method)
    monkeypatch.setattr(Scripted, "_autocast", lambda _: nullcontext())
    monkeypatch.setattr(Scripted, "example", lambda _: ((), {}))
    with pytest.raises(EngineRefusal) as refused:
        made.compile()
    assert step in refused.value.hint
    assert "method=trace" not in refused.value.hint
