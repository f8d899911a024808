"""What a model takes and gives, as its session says it: for files that nothing else can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.schema.model_questions import DescribeModel, ModelInterface
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.state import WorkerState


class NodeArg(Protocol):
    """One declared input or output, as ONNX Runtime describes it."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def shape(self) -> Sequence[object]: ...


def load_and_describe(question: DescribeModel, state: WorkerState) -> ModelInterface:
    """Load a model and say what it takes and gives."""
    state.import_runtime()
    state.enter("session")
    return describe_model(question.path, question.custom_ops)


def describe_model(path: str, custom_ops: tuple[str, ...] = ()) -> ModelInterface:
    """Load a model on the CPU and read its interface; weights that are inputs too are left out.

    Raises:
        Exception: what ONNX Runtime raises if it can't be loaded.
    """
    config = SessionConfig(graph_optimization_level="disable", custom_ops=custom_ops)
    session, _ = create(path, Provider(alias="cpu", name=CPU), session_options(config, threads=1))
    return ModelInterface(
        inputs=tuple(_info(argument) for argument in session.get_inputs()),
        outputs=tuple(_info(argument) for argument in session.get_outputs()),
    )


def _info(argument: NodeArg) -> TensorInfo:
    return TensorInfo(
        name=argument.name,
        type=argument.type,
        shape=tuple(
            size if isinstance(size, int | str) and size not in ("", -1) else None
            for size in argument.shape
        ),
        optional=argument.type.startswith("optional("),
    )
