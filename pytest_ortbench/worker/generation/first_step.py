"""The first step of a decoder in two files: it reads a prompt, and gives what later steps take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.model import FirstStepFile
from pytest_ortbench.worker.binding import device_of
from pytest_ortbench.worker.generation.step_inputs import StepInputs
from pytest_ortbench.worker.runtime import load

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from onnxruntime import InferenceSession, IOBinding, OrtValue

    Ids = npt.NDArray[np.integer[Any]]


class FirstStep:
    """Reads prompts with an empty cache.

    Attributes:
        given: What the last run gave, by the inputs of the later steps; it stays on the device.

    Args:
        session: Of the file of the first step.
        file: What its inputs mean, and which of its outputs later steps take.
        provider: Where it runs.
        batch: Number of sequences.
        run: What runs the session on a binding; the session's own where it is ``None``.
    """

    def __init__(
        self,
        session: InferenceSession,
        file: FirstStepFile,
        provider: Provider,
        *,
        batch: int,
        run: Callable[[IOBinding], object] | None = None,
    ) -> None:
        self._ort, _ = load()
        self._file = file
        self._device = device_of(provider)
        self._inputs = StepInputs(session, file.decoder, batch=batch)
        self._binding = session.io_binding()
        self._run = run or session.run_with_iobinding
        self._heard: list[OrtValue] = []
        self._fed: dict[str, npt.NDArray[Any]] = {}
        self.given: dict[str, OrtValue] = {}

    @property
    def takers(self) -> tuple[str, ...]:
        """Inputs of the later steps that it gives."""
        return tuple(self._file.given)

    def hear(self, heard: Mapping[str, object]) -> None:
        """Bind what an encoder said, by name of the input; it stays where the provider has it."""
        names = self._file.decoder.heard
        #: They must live as long as they are bound.
        self._heard = [bound(self._ort, self._inputs, n, heard[n], self._device) for n in names]
        for name, value in zip(names, self._heard, strict=True):
            self._binding.bind_ortvalue_input(name, value)

    def read(self, ids: Ids) -> tuple[int, npt.NDArray[Any]]:
        """Run it on the tokens of a prompt, ``[batch, tokens]``.

        Returns:
            Nanoseconds of the run alone, until its outputs are there, and the logits.
        """
        binding, decoder = self._binding, self._file.decoder
        outputs = list(dict.fromkeys(self._file.given.values()))
        self._fed = self._inputs.of(ids, before=0)
        for name, value in self._fed.items():
            binding.bind_cpu_input(name, value)
        binding.clear_binding_outputs()
        binding.bind_output(decoder.logits, "cpu", 0)
        for name in outputs:
            binding.bind_output(name, *self._device)
        clock, run, synchronise = perf_counter_ns, self._run, binding.synchronize_outputs
        started = clock()
        run(binding)
        synchronise()
        took = clock() - started
        logits, *values = binding.get_outputs()
        made = dict(zip(outputs, values, strict=True))
        self.given = {taker: made[output] for taker, output in self._file.given.items()}
        return took, logits.numpy()


def bound(
    ort: Any, inputs: StepInputs, name: str, value: object, device: tuple[str, int]
) -> OrtValue:
    """Return a value on a device, in the type that an input has.

    Args:
        ort: ONNX Runtime.
        inputs: Knows the type.
        name: Of the input.
        value: An array, or a value that is on the device.
        device: Its kind and number.
    """
    if isinstance(value, ort.OrtValue):
        return value
    made: OrtValue = ort.OrtValue.ortvalue_from_numpy(inputs.typed(name, value), *device)
    return made
