"""The model that a service answers with: its interface, its session, its batch axis."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.element_types import element_of
from pytest_ortbench.core.errors import UsageError, class_and_line, did_you_mean
from pytest_ortbench.core.units import counted
from pytest_ortbench.serving.protocol import (
    DeclaredTensor,
    InferRequest,
    ModelMetadata,
    WantedOutput,
)
from pytest_ortbench.serving.tensor_values import DATATYPE_OF, ProtocolError
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.runtime import allowed
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What the protocol calls ONNX Runtime.
PLATFORM = "onnxruntime_onnx"
#: The one version of a model that a service has.
VERSION = "1"
#: What rows of a batch may differ from the same rows alone, as a share of the largest value.
_TOLERANCE = 1e-2
#: What the protocol can carry, for messages.
_CARRIED = "a tensor of bool, string, bfloat16, float16, float, double or integers of 8 to 64 bits"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAxes:
    """Along which axis requests are joined, and outputs taken apart.

    Attributes:
        inputs: The axis of each input, by name.
        outputs: The axis of each output, in order.
    """

    inputs: Mapping[str, int]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """A request that fits the interface of the model.

    Attributes:
        feeds: What the session is fed.
        rows: Its size along the batch axis; 1 where there is none.
        kind: What other requests must have in common with it to share an inference.
        wanted: Indexes of the outputs that it asks for, in its order.
    """

    feeds: Mapping[str, NDArray[Any]]
    rows: int
    kind: Hashable
    wanted: tuple[int, ...]


class ServedModel:
    """A session and what it takes.

    Attributes:
        metadata: What clients are told of it.
        axes: Where its batch is; ``None`` where requests are not joined.
        unjoined: What speaks against it; empty where nothing does, or nobody asked.
        left_out: Outputs that the protocol can't carry, and which nobody is answered with.

    Args:
        case: The model, the provider and the session options, with inputs that it takes.
        name: What requests call it.
        double: The same case with a batch of two; ``None`` joins no requests.

    Raises:
        UsageError: if the protocol can't carry an input, or none of the outputs.
        Exception: what ONNX Runtime raises.
    """

    def __init__(self, case: Case, name: str, *, double: Case | None = None) -> None:
        wanted = case.session.intra_op_num_threads
        self.threads = allowed().threads if wanted is None else wanted
        options = session_options(case.session, threads=self.threads)
        self._session, _ = create(case.variant.path, case.provider, options)
        shapes = {info.name: info.shape for info in (*case.model.inputs, *case.model.outputs)}
        inputs = {item.name: item for item in self._session.get_inputs()}
        for item in inputs.values():
            _require_carried(item.name, item.type)
        outputs = [item for item in self._session.get_outputs() if _is_carried(item.type)]
        left_out = [item for item in self._session.get_outputs() if not _is_carried(item.type)]
        self.left_out = tuple(item.name for item in left_out)
        if not outputs:
            types = ", ".join(f"{item.name!r} is {item.type!r}" for item in left_out)
            raise UsageError(
                f"no output of the model {name!r} can be sent over the Open Inference Protocol: "
                f"{types}",
                place="MODEL",
                hint=f"Serve a model with an output that is {_CARRIED}",
            )
        self._shapes = {name: shapes.get(name, ()) for name in inputs}
        self._outputs = [item.name for item in outputs]
        self.metadata = ModelMetadata(
            name=name,
            versions=(VERSION,),
            platform=PLATFORM,
            inputs=tuple(_declared(item.name, item.type, shapes) for item in inputs.values()),
            outputs=tuple(_declared(item.name, item.type, shapes) for item in outputs),
        )
        self._datatypes = {tensor.name: tensor.datatype for tensor in self.metadata.inputs}
        self._sample = make_feeds(case.inputs, seed=case.seed)
        self.run(self._sample)
        self.axes: BatchAxes | None = None
        self.unjoined = "" if double is None else self._find_axes(case, double)

    @property
    def sample(self) -> Mapping[str, Any]:
        """Inputs that it takes, drawn as for a measurement."""
        return self._sample

    def run(self, feeds: Mapping[str, Any]) -> list[NDArray[Any]]:
        """Run once, and return the outputs in the order of the metadata.

        Raises:
            Exception: what ONNX Runtime raises.
        """
        return list(self._session.run(self._outputs, feeds))

    def check(self, request: InferRequest) -> CheckedRequest:
        """Compare a request with the interface of the model.

        Raises:
            ProtocolError: for the first field that does not fit.
        """
        feeds: dict[str, NDArray[Any]] = {}
        for index, tensor in enumerate(request.inputs):
            place = f"inputs[{index}]"
            if tensor.name not in self._datatypes:
                raise ProtocolError(
                    f"the model has no input {tensor.name!r}",
                    place=f"{place}.name",
                    hint=did_you_mean(tensor.name, self._datatypes),
                )
            if tensor.datatype != self._datatypes[tensor.name]:
                raise ProtocolError(
                    f"the input {tensor.name!r} came as {tensor.datatype}, but the model needs "
                    f"{self._datatypes[tensor.name]}",
                    place=f"{place}.datatype",
                    hint=f"Convert the values to {self._datatypes[tensor.name]}, and send this as "
                    "the datatype",
                )
            self._check_shape(tensor.name, tensor.array.shape, f"{place}.shape")
            feeds[tensor.name] = tensor.array
        missing = [name for name in self._datatypes if name not in feeds]
        if missing:
            raise ProtocolError(
                f"the input {missing[0]!r} is missing",
                place="inputs",
                hint=f"Send all inputs: {', '.join(self._datatypes)}",
            )
        rows, kind = self._kind(feeds)
        return CheckedRequest(
            feeds=feeds, rows=rows, kind=kind, wanted=self._wanted(request.wanted)
        )

    def joined(self, requests: Sequence[Mapping[str, NDArray[Any]]]) -> Mapping[str, Any]:
        """Return the feeds of several requests of one kind as those of one inference."""
        import numpy as np

        assert self.axes is not None
        return {
            name: np.concatenate([feeds[name] for feeds in requests], axis=axis)
            for name, axis in self.axes.inputs.items()
        }

    def apart(self, outputs: Sequence[Any], rows: Sequence[int]) -> list[list[NDArray[Any]]]:
        """Return the outputs of one inference as those of the requests that were joined for it.

        Raises:
            ValueError: if an output has not one row for each row of the inputs.
        """
        import numpy as np

        assert self.axes is not None
        cuts = np.cumsum(rows)
        pieces = []
        for output, axis in zip(outputs, self.axes.outputs, strict=True):
            if output.ndim <= axis or output.shape[axis] != cuts[-1]:
                raise ValueError(f"{output.shape} has no {cuts[-1]} rows on axis {axis}")
            pieces.append(np.split(output, cuts[:-1], axis=axis))
        return [list(own) for own in zip(*pieces, strict=True)]

    def _check_shape(self, name: str, shape: tuple[int, ...], place: str) -> None:
        declared = self._shapes[name]
        if declared is None:
            return
        if len(shape) != len(declared):
            raise ProtocolError(
                f"the input {name!r} came with the shape {list(shape)}, but the model needs "
                f"{counted(len(declared), 'dimension')}",
                place=place,
                hint=_shape_hint(declared),
            )
        for axis, (size, known) in enumerate(zip(shape, declared, strict=True)):
            if isinstance(known, int) and size != known:
                raise ProtocolError(
                    f"the input {name!r} came with size {size} on axis {axis}, but the model needs "
                    f"{known}",
                    place=f"{place}[{axis}]",
                    hint=_shape_hint(declared),
                )

    def _wanted(self, wanted: Sequence[WantedOutput]) -> tuple[int, ...]:
        if not wanted:
            return tuple(range(len(self._outputs)))
        for index, output in enumerate(wanted):
            if output.name not in self._outputs:
                raise ProtocolError(
                    f"the model has no output {output.name!r}",
                    place=f"outputs[{index}].name",
                    hint=did_you_mean(output.name, self._outputs),
                )
        return tuple(self._outputs.index(output.name) for output in wanted)

    def _kind(self, feeds: Mapping[str, NDArray[Any]]) -> tuple[int, Hashable]:
        """Rows of a request, and what says with which others it can be joined."""
        if self.axes is None:
            return 1, None
        rows = {array.shape[self.axes.inputs[name]] for name, array in feeds.items()}
        if len(rows) != 1 or 0 in rows:
            return 1, object()  # the model says what it makes of that, alone
        rest = tuple(
            (name, feeds[name].shape[:axis], feeds[name].shape[axis + 1 :])
            for name, axis in self.axes.inputs.items()
        )
        return rows.pop(), rest

    def _find_axes(self, case: Case, double: Case) -> str:
        """Set :attr:`axes` if joined requests are answered as they are alone; say why if not."""
        import numpy as np

        axes: dict[str, int] = {}
        for one, two in zip(case.inputs, double.inputs, strict=True):
            pairs = list(zip(one.shape, two.shape, strict=True))
            sizes = [axis for axis, pair in enumerate(pairs) if pair == (1, 2)]
            if len(sizes) != 1:
                return f"input {one.name!r} has no batch axis"
            axes[one.name] = sizes[0]
        feeds: Mapping[str, Any] = make_feeds(double.inputs, seed=double.seed)
        singles = [
            {name: np.take(feeds[name], [row], axis=axis) for name, axis in axes.items()}
            for row in range(2)
        ]
        try:
            together, alone = self.run(feeds), [self.run(single) for single in singles]
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            return f"a batch of two does not run: {class_and_line(error)}"
        found = []
        for name, both, *each in zip(self._outputs, together, *alone, strict=True):
            axis = _axis_of(both, each)
            if axis is None:
                return f"for a batch the output {name!r} differs from that of single rows"
            found.append(axis)
        self.axes = BatchAxes(inputs=axes, outputs=tuple(found))
        return ""


def _shape_hint(declared: Sequence[int | str | None]) -> str:
    sizes = ", ".join(str(size) if isinstance(size, int) else "any size" for size in declared)
    return f"Send it with the shape [{sizes}]"


def _axis_of(both: NDArray[Any], each: Sequence[NDArray[Any]]) -> int | None:
    """The axis along which an output of two rows consists of those of each row."""
    import numpy as np

    for axis in range(both.ndim):
        if any(one.ndim != both.ndim or one.shape[axis] != 1 for one in each):
            continue
        stacked = np.concatenate(each, axis=axis)
        if stacked.shape != both.shape:
            continue
        if both.dtype.kind not in "fc":
            return axis if np.array_equal(stacked, both) else None
        if not np.array_equal(np.isfinite(stacked), np.isfinite(both)):
            return None
        usual = np.isfinite(both)
        largest = float(np.abs(both[usual]).max(initial=0.0))
        close = np.abs(stacked - both)[usual].max(initial=0.0) <= _TOLERANCE * largest
        return axis if close else None
    return None


def _is_carried(type_name: str) -> bool:
    return type_name.startswith("tensor(") and element_of(type_name) in DATATYPE_OF


def _require_carried(name: str, type_name: str) -> None:
    if not _is_carried(type_name):
        raise UsageError(
            f"the input {name!r} is {type_name!r}, a type that the Open Inference Protocol lacks",
            place="MODEL",
            hint=f"Serve a model of which each input is {_CARRIED}",
        )


def _declared(
    name: str, type_name: str, shapes: Mapping[str, tuple[int | str | None, ...] | None]
) -> DeclaredTensor:
    shape = shapes.get(name) or ()
    return DeclaredTensor(
        name=name,
        datatype=DATATYPE_OF[element_of(type_name)],
        shape=tuple(size if isinstance(size, int) else -1 for size in shape),
    )
