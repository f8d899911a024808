"""An encoder on a session of ONNX Runtime: it runs once, and a decoder listens to what it says."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.model import EncoderFile
from pytest_ortbench.worker.binding import device_of
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.runtime import load

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue


class RunEncoder:
    """What a decoder listens to.

    Args:
        session: Of the encoder's file.
        encoder: Which of its outputs the decoder takes.
        case: What it reads, and what the decoder takes it as.
    """

    def __init__(self, session: InferenceSession, encoder: EncoderFile, case: Case) -> None:
        self._ort, _ = load()
        self._session = session
        self._device = device_of(case.provider)
        self._outputs = list(dict.fromkeys(encoder.heard.values()))
        self._takes = encoder.heard
        self._types = {spec.name: spec.type for spec in (*case.inputs, *case.first_inputs)}
        self._masks = [name for name in case.model.hears if name not in encoder.heard]
        self._binding = session.io_binding()
        feeds = make_feeds(case.encoder_inputs, seed=case.seed)
        #: They must live as long as the binding.
        self._fed = {name: self._bound(value) for name, value in feeds.items()}
        for name, value in self._fed.items():
            self._binding.bind_ortvalue_input(name, value)

    def listen(self) -> int:
        """Run the encoder, and return the nanoseconds until its outputs are there."""
        self._binding.clear_binding_outputs()
        for name in self._outputs:
            self._binding.bind_output(name, *self._device)
        started = perf_counter_ns()
        self._session.run_with_iobinding(self._binding)
        self._binding.synchronize_outputs()
        return perf_counter_ns() - started

    def said(self) -> dict[str, object]:
        """Return what the last run said, by the decoder's inputs, in the types that these have."""
        values = dict(zip(self._outputs, self._binding.get_outputs(), strict=True))
        heard: dict[str, object] = {
            name: self._as(values[output], self._types[name])
            for name, output in self._takes.items()
        }
        return {**heard, **{name: self._mask(name, heard) for name in self._masks}}

    def _as(self, value: OrtValue, type_name: str) -> OrtValue:
        if value.data_type() == type_name:
            return value
        kind = NUMPY_NAMES[type_name[len("tensor(") : -1]]
        return self._bound(value.numpy().astype(kind))

    def _mask(self, name: str, heard: dict[str, object]) -> object:
        """Return ones for all that was heard: ``[batch, length]``."""
        import numpy as np

        states: Any = next(iter(heard.values()))
        shape = states.shape()
        kind = NUMPY_NAMES[self._types[name][len("tensor(") : -1]]
        return np.ones((shape[0], shape[-2]), dtype=kind)

    def _bound(self, value: Any) -> OrtValue:
        if isinstance(value, self._ort.OrtValue):
            return value
        return self._ort.OrtValue.ortvalue_from_numpy(value, *self._device)
