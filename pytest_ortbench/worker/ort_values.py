"""Sessions with tensors of element types that numpy lacks: their values go in and out as OrtValues.

Everywhere else such tensors are arrays of a stand-in (:mod:`~pytest_ortbench.worker.element_bits`).
What is timed takes inputs that are there: ``run``, or ``run_with_iobinding`` where numpy lacks the
type of an output, which ``run`` refuses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.element_types import ELEMENT_TYPES, NUMPY_NAMES, STAND_INS, element_of
from pytest_ortbench.core.errors import class_and_line, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.worker.element_bits import from_bits, to_bits

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue

#: Runs all outputs, or those that are named, on what is fed.
PlainRun = Callable[[Any, Mapping[str, Any]], Sequence[object]]


def take_stand_ins(ort: ModuleType, session: InferenceSession) -> None:
    """Let ``session.run`` take and give stand-ins, where numpy lacks a type of its tensors.

    Args:
        ort: The imported ONNX Runtime.
        session: It is changed only where that is needed, so that nothing is added to other calls.
    """
    declared = [*session.get_inputs(), *session.get_outputs()]
    if any(element_of(item.type) in STAND_INS for item in declared):
        calls = StandInCalls(ort, session)
        vars(session).update(run=calls, run_async=calls.refuse_async)


def plain_call(
    session: InferenceSession, feeds: Mapping[str, object]
) -> tuple[PlainRun, Mapping[str, object]]:
    """Return what an application would call, and with what: nothing is converted in it."""
    run = session.run
    if not isinstance(run, StandInCalls):
        return run, feeds
    given = run.fed(feeds)
    if not run.foreign:
        return run.plain, given
    # *Seen*: the Python around run_with_ort_values takes 33 µs, that of a bound run 1 µs.
    binding = session.io_binding()
    for name, value in given.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def bound(_names: object, _feeds: object) -> Sequence[object]:
        session.run_with_iobinding(binding)
        return ()

    return bound, given


def is_bound(session: InferenceSession) -> bool:
    """Whether plain calls of a session are bound runs, since numpy lacks a type of its outputs."""
    run = session.run
    return isinstance(run, StandInCalls) and bool(run.foreign)


class StandInCalls:
    """Takes the place of ``run`` of a session.

    Attributes:
        foreign: Names of outputs whose type numpy lacks.
        plain: The method of the session.

    Args:
        ort: The imported ONNX Runtime.
        session: The session.
    """

    def __init__(self, ort: ModuleType, session: InferenceSession) -> None:
        self._ort = ort
        self._inputs = {item.name: item.type for item in session.get_inputs()}
        self._outputs = {item.name: item.type for item in session.get_outputs()}
        self.foreign = [n for n, kind in self._outputs.items() if element_of(kind) in STAND_INS]
        self.plain: PlainRun = session.run
        self._run_values: PlainRun = session.run_with_ort_values

    def __call__(
        self, names: Sequence[str] | None, feeds: Mapping[str, object], _options: object = None
    ) -> list[object]:
        """Run once on stand-ins, and return outputs of which none needs more than numpy."""
        wanted = list(names or self._outputs)
        plain = [name for name in wanted if name not in self.foreign]
        given = self.fed(feeds)
        if not self.foreign:
            return list(self.plain(wanted, given))
        values = dict(zip(wanted, self._run_values(wanted, given), strict=True))
        arrays = {name: self._array(name, values[name]) for name in self.foreign if name in values}
        for name in plain:
            value: Any = values[name]
            arrays[name] = value.numpy() if value.is_tensor() else self.plain([name], given)[0]
        return [arrays[name] for name in wanted]

    def fed(self, feeds: Mapping[str, object]) -> Mapping[str, object]:
        """Return the inputs as the session takes them; those that it takes already stay.

        Raises:
            WorkerError: ``unsupported`` for what can't be made from here.
        """
        return {name: self._fed(name, value) for name, value in feeds.items()}

    def refuse_async(self, *_arguments: object) -> None:
        """Refuse ``run_async``, which has no way to give such outputs.

        Raises:
            WorkerError: ``unsupported``.
        """
        tensors = {**self._inputs, **self._outputs}
        name = next(name for name, kind in tensors.items() if element_of(kind) in STAND_INS)
        raise case_error(
            f"--ort-calls=async works with numpy arrays only, but the model's {name!r} is a "
            f"{tensors[name]}, which numpy lacks",
            hint="Use --ort-calls=sync",
        )

    def _fed(self, name: str, value: object) -> object:
        import numpy as np

        kind = self._inputs[name]
        element = element_of(kind)
        if isinstance(value, np.ndarray) and element in STAND_INS:
            return value_of(self._ort, value, element, name=name)
        if isinstance(value, list | dict) and self.foreign:
            raise case_error(
                f"numpy lacks {self._outputs[self.foreign[0]]}, the type of the output "
                f"{self.foreign[0]!r}. With such an output, ONNX Runtime does not take the input "
                f"{name!r}, a {kind}, from Python",
                "Export the model with inputs and outputs that are tensors of float, float16 or "
                "integers",
            )
        if self.foreign and isinstance(value, np.ndarray):
            return self._ort.OrtValue.ortvalue_from_numpy(
                np.ascontiguousarray(value).reshape(value.shape)
            )
        return value

    def _array(self, name: str, value: Any) -> object:
        kind = self._outputs[name]
        if value is None or not value.is_tensor():
            raise case_error(
                f"output {name!r} has the type {kind!r}, which can't be read in Python",
                "Export the model with outputs that are tensors of float, float16 or integers",
            )
        return array_of(value, element_of(kind))


def value_of(ort: ModuleType, array: Any, element: str, *, name: str) -> OrtValue:
    """Make a tensor of an element type that numpy lacks.

    Args:
        ort: The imported ONNX Runtime.
        array: Its numbers, in the stand-in.
        element: Its element type.
        name: Name of the input, for messages.

    Raises:
        WorkerError: ``unsupported`` if this ONNX Runtime can't.
    """
    number = ELEMENT_TYPES[element].number
    data = to_bits(array, element)
    try:
        value: OrtValue = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), number)
        size = value.tensor_size_in_bytes() if array.size else 0
    except Exception as error:  # ONNX Runtime's own exceptions share no base class
        raise case_error(
            f"input {name!r} has elements of type {element!r}, and ONNX Runtime "
            f"{ort.__version__} can't make such a tensor in Python. "
            f"{says('ONNX Runtime', class_and_line(error))}",
            hint="Name a later ONNX Runtime with --ort-runtimes. To keep this one, use a model "
            "whose inputs are float, float16 or integers",
        ) from error
    if size:
        ctypes.memmove(value.data_ptr(), data.ctypes.data, size)
    return value


def array_of(value: Any, element: str) -> Any:
    """Return the numbers of a tensor of an element type that numpy lacks, in its stand-in."""
    import numpy as np

    shape = tuple(value.shape())
    size = value.tensor_size_in_bytes() if 0 not in shape else 0
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return from_bits(np.frombuffer(data, dtype=np.uint8), element, shape)


def numpy_has_it(type_name: str) -> bool:
    """Whether a type is a tensor of numbers that numpy has."""
    element = element_of(type_name)
    return type_name.startswith("tensor(") and element in NUMPY_NAMES and element != "string"
