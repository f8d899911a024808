"""A variant against its reference, value by value inside the graph.

Both graphs get their inner float values as outputs and run without optimisation on the same inputs;
values of the same name are compared. The tools keep the names of what a node makes, so this finds
the node for every way of converting, where ONNX Runtime's own helper knows quantise-dequantise
pairs only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.convert.external import at_hand
from pytest_ortbench.convert.graph import graphs_within, load_typed, save_model
from pytest_ortbench.core.case import InputSpec, Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.node_error import NodeError, NodeErrors
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.schema.model_questions import CompareNodes
from pytest_ortbench.worker.accuracy import fitting
from pytest_ortbench.worker.inputs import make_feeds, varies
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.slices import SliceSums
from pytest_ortbench.worker.state import WorkerState

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

#: Values that are fetched at once; the rest is not kept.
_AT_ONCE = 32


@dataclass(slots=True)
class _Sums:
    """What is kept of one value over all samples."""

    signal: float = 0.0
    noise: float = 0.0
    max_abs: float = 0.0
    nonfinite: int = 0
    reference_nan: int = 0
    compared: int = 0
    slices: SliceSums = field(default_factory=SliceSums)

    def add(self, expected: NDArray[Any], values: NDArray[Any]) -> None:
        import numpy as np

        self.slices.add(expected, values)
        right, got = expected.astype(np.float64), values.astype(np.float64)
        both = np.isfinite(right) & np.isfinite(got)
        self.nonfinite += int(np.count_nonzero(np.isfinite(right) & ~np.isfinite(got)))
        self.reference_nan += int(np.count_nonzero(np.isnan(right)))
        error = right[both] - got[both]
        self.compared += int(error.size)
        self.signal += float(np.sum(right[both] ** 2))
        self.noise += float(np.sum(error**2))
        if error.size:
            self.max_abs = max(self.max_abs, float(np.abs(error).max()))

    @property
    def sqnr_db(self) -> float | None:
        if not self.noise:
            return None
        return 10 * math.log10(self.signal / self.noise) if self.signal else -200.0


@dataclass(slots=True)
class InnerGraph:
    """A graph whose inner values are outputs.

    Attributes:
        session: Runs it.
        producers: The node that makes each float value.
        rounded: Names of values after QuantizeLinear and DequantizeLinear, by their names before.
    """

    session: InferenceSession
    producers: dict[str, onnx.NodeProto]
    rounded: dict[str, str] = field(default_factory=dict)


def compare_case(question: CompareNodes, state: WorkerState) -> NodeErrors:
    """Compare the value of every node of a case with its reference's."""
    state.import_runtime()
    state.enter("accuracy")
    case, right = question.case, question.right
    return compare_nodes(
        right.model.path,
        case.variant.path,
        right.inputs,
        seed=case.seed,
        samples=question.samples,
        custom_ops=case.session.custom_ops,
    )


def compare_nodes(
    reference: str,
    variant: str,
    inputs: Sequence[InputSpec],
    *,
    seed: int,
    samples: int,
    custom_ops: Sequence[str] = (),
) -> NodeErrors:
    """Compare the value of every node that both graphs have.

    Args:
        reference: Path of the file that is right.
        variant: Path of the file under test.
        inputs: Inputs of the reference.
        seed: Seed of drawn values.
        samples: Input sets; one where nothing is drawn.
        custom_ops: Custom operator libraries.

    Raises:
        WorkerError: if one of them wants an input that there is none of.
        Exception: what ONNX and ONNX Runtime raise.
    """
    with OwnFolder("nodes") as folder:
        right = inner_graph(Path(reference), folder, "right", custom_ops)
        other = inner_graph(Path(variant), folder, "other", custom_ops)
        names = [name for name in right.producers if name in other.producers]
        sums = {name: _Sums() for name in names}
        count = samples if varies(inputs) else 1
        for number in range(count):
            feeds = make_feeds(inputs, seed=seed, sample=number)
            for part in some_at_a_time(names):
                expected = right.session.run(part, _fitting(right.session, feeds, reference))
                rounded_names = [other.rounded.get(name, name) for name in part]
                converted = other.session.run(
                    rounded_names, _fitting(other.session, feeds, variant)
                )
                for name, original, two in zip(part, expected, converted, strict=True):
                    if original.shape == two.shape:
                        sums[name].add(original, two)
    return NodeErrors(
        nodes=tuple(
            NodeError(
                node=right.producers[name].name or name,
                op_type=right.producers[name].op_type,
                output=name,
                sqnr_db=sums[name].sqnr_db,
                max_abs=sums[name].max_abs,
                nonfinite=sums[name].nonfinite,
                reference_nan=sums[name].reference_nan,
                compared=sums[name].compared,
                inputs=tuple(right.producers[name].input),
                slices=sums[name].slices.worst(),
            )
            for name in names
        ),
        unmatched=len(right.producers) - len(names),
        samples=count,
        inner=_inner_nodes(reference),
    )


def _inner_nodes(path: str) -> int:
    """Number of nodes that compute inside graphs of other nodes."""
    import onnx

    main = onnx.load(path, load_external_data=False).graph
    return sum(
        node.op_type != "Constant"
        for graph in graphs_within(main)
        if graph is not main
        for node in graph.node
    )


def some_at_a_time(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield names of values in lists as long as is fetched at once."""
    for start in range(0, len(names), _AT_ONCE):
        yield list(names[start : start + _AT_ONCE])


def inner_graph(path: Path, folder: Path, side: str, custom_ops: Sequence[str] = ()) -> InnerGraph:
    """Write a copy of a model whose inner float values are outputs, and open it.

    Args:
        path: The model.
        folder: Where the copy goes.
        side: Name of the copy.
        custom_ops: Custom operator libraries.
    """
    from onnx import TensorProto, helper

    floats = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}
    model, _ = load_typed(at_hand(path, folder / side))
    types = {
        value.name: value.type.tensor_type.elem_type
        for value in (*model.graph.value_info, *model.graph.output)
    }
    producers = {
        name: node
        for node in model.graph.node
        for name in node.output
        if types.get(name) in floats and node.op_type != "Constant"
    }
    outputs = {value.name for value in model.graph.output}
    for name in producers:
        if name not in outputs:
            model.graph.output.append(helper.make_tensor_value_info(name, types[name], None))
    target = folder / f"{side}.onnx"
    save_model(model, target)
    config = SessionConfig(graph_optimization_level="disable", custom_ops=tuple(custom_ops))
    options = session_options(config, threads=allowance().threads)
    session, _ = create(str(target), Provider(alias="cpu", name=CPU), options)
    return InnerGraph(session=session, producers=producers, rounded=_rounded(model, producers))


def _rounded(model: onnx.ModelProto, known: Mapping[str, object]) -> dict[str, str]:
    """What stands for a value behind its quantise-dequantise pair.

    The quantiser drops a Relu where the pair clips anyway: only behind it the value is the same.
    """
    quantised = {
        node.output[0]: node.input[0]
        for node in model.graph.node
        if node.op_type == "QuantizeLinear"
    }
    names: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in quantised:
            before, after = quantised[node.input[0]], node.output[0]
            if before in known and after in known:
                names.setdefault(before, after)
    return names


def _fitting(session: InferenceSession, feeds: dict[str, object], path: str) -> dict[str, object]:
    fed, missing = fitting(session, feeds)
    if missing:
        raise case_error(
            f"the nodes can't be compared: {Path(path).name!r} has the input {missing!r}, which "
            "the model that it is compared with does not have",
            "Export both models with the same input names",
            phase="accuracy",
        )
    return fed
