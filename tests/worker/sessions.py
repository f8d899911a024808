"""Real CPU sessions, and stand-ins that spoil what a real one gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnxruntime

CPU = "CPUExecutionProvider"


def cpu_session(
    model: bytes,
    *,
    profile_prefix: str = "",
    optimise: bool = True,
    entries: Mapping[str, str] | None = None,
) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for key, entry in (entries or {}).items():
        options.add_session_config_entry(key, entry)
    if profile_prefix:
        options.enable_profiling = True
        options.profile_file_prefix = profile_prefix
    return onnxruntime.InferenceSession(model, options, providers=[CPU])


class Spoiled:
    """A session whose outputs go through ``spoil(call, outputs)``; calls count from 0."""

    def __init__(self, session: Any, spoil: Callable[[int, list[Any]], list[Any]]) -> None:
        self._session = session
        self._spoil = spoil
        self._calls = 0

    def get_inputs(self) -> Sequence[Any]:
        return self._session.get_inputs()

    def get_outputs(self) -> Sequence[Any]:
        return self._session.get_outputs()

    def get_providers(self) -> list[str]:
        return ["SpoilingExecutionProvider"]

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, object], /) -> Sequence[object]:
        call, self._calls = self._calls, self._calls + 1
        return self._spoil(call, list(self._session.run(names, feeds)))
