"""What an engine has to do to be measured like a session of ONNX Runtime. Standard library only.

The process that measures makes one :class:`Engine` for a case, and calls, each in a phase of its
own that is timed apart: :meth:`Engine.load`, :meth:`Engine.build` and :meth:`Engine.compile` once,
:meth:`Engine.open` for each session of the case, and then what this returned, thousands of times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ortbench.core.exchange import Exchanges
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.source import Source

#: Runs one inference: arrays of numpy by the names of the inputs, to arrays in the order of the
#: outputs. All of it is timed, so what an application need not do does not belong into it.
Inference = Callable[[Mapping[str, Any]], Sequence[Any]]

#: Types of numpy of the tensors that an array holds, by ONNX Runtime's spelling.
NUMPY_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    **{
        f"tensor({name})": name
        for name in (
            *("bool", "uint8", "uint16", "uint32", "uint64"),
            *("int8", "int16", "int32", "int64", "float16"),
        )
    },
}


class EngineRefusal(Exception):
    """An engine can't run a model as asked; the case becomes a row that says why.

    Attributes:
        kind: ``unsupported`` (operator, type, shape), ``unavailable`` (library, device, service),
            ``timeout`` or ``error``.
        hint: The next step, empty where none is known.

    Args:
        message: One line, with the engine's own words where it has some.
        kind: As above.
        hint: As above.
    """

    def __init__(self, message: str, *, kind: str = "unsupported", hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTensor:
    """One input or output of the model.

    Attributes:
        name: As in the ONNX file.
        type: ONNX Runtime's spelling: ``tensor(float)``.
        shape: Sizes of an input, all resolved; ``None`` for outputs.
        symbols: Of an input: by axis, the name of the dimension that the model leaves open; empty
            where it fixes the size.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTask:
    """What an engine is to run.

    Attributes:
        path: The ONNX file, at the precision of the case.
        inputs: What it is fed, in the order of the file.
        outputs: What it gives, in the order of the file.
        threads: Number of threads of one inference.
        device: What stands behind the colon of ``alias:DEVICE``, empty for the default.
        options: Options of the engine, as given.
        folder: Where what :meth:`Engine.compile` makes is kept for the other workers of the run;
            ``None`` keeps nothing. It is empty for the first worker.
        source: What the model was exported from, for frameworks; ``None`` for engines that run the
            ONNX file. :func:`pytest_ortbench.worker.entry.load_source` loads it.
    """

    path: Path
    inputs: tuple[EngineTensor, ...]
    outputs: tuple[EngineTensor, ...]
    threads: int
    device: str = ""
    options: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    source: Source | None = None

    def required_source(self) -> Source:
        """Return what the model was exported from, for a framework.

        Raises:
            EngineRefusal: if the model was given as an ONNX file.
        """
        if self.source is None:
            raise EngineRefusal(
                "the model was given as an ONNX file, which a framework does not run",
                hint="To measure the framework, name the code that makes the model instead of "
                "the ONNX file, e.g. --ort-models=net.py:build. If you have the ONNX file only, "
                "leave the framework out of --ort-providers",
            )
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerValue:
    """What a part of a model gave in one inference.

    Attributes:
        path: Where the part is in the model, as exporters write it into the file:
            ``encoder.layers.0.norm``.
        kind: What it is: ``LayerNorm``.
        value: Its output, an array of numpy.
    """

    path: str
    kind: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RightAnswer:
    """What answers to the same request are compared with.

    Attributes:
        floor: What outputs must keep against it.
        outputs: Outputs of the reference, in the order of the model; ``None`` where it has none.
    """

    floor: Floor
    outputs: Sequence[Any] | None = None


class Sender(ABC):
    """Sends requests of one kind as they arrive, many at a time, to what answers in its own time.

    It is for engines that ask others: no caller has to wait for an answer.
    """

    @abstractmethod
    def send(self, done: Callable[[int], None], at_first: Callable[[], None]) -> None:
        """Send one request without waiting.

        Args:
            done: Called once, from another thread, when the request was answered or has failed,
                with the tokens that were written; 0 where none are counted.
            at_first: Called before, when the first of these was there; not where none are.
        """

    @abstractmethod
    def close(self, issue_delays_ns: Sequence[int] = ()) -> Exchanges:
        """End, once every request is done, and return what became of all.

        Args:
            issue_delays_ns: From the scheduled arrival of each request to when it was handed over,
                in this order; empty where that is not known.
        """


class Engine(ABC):
    """Runs one model in place of a session of ONNX Runtime.

    Attributes:
        task: What to run.

    Args:
        task: As above.
    """

    def __init__(self, task: EngineTask) -> None:
        self.task = task

    @property
    def folder(self) -> Path | None:
        """Where what it compiles is kept, if it is."""
        return self.task.folder

    @abstractmethod
    def load(self) -> str:
        """Import the library, tell it its number of threads, and return its version.

        Raises:
            ImportError: if it is not installed.
        """

    def build(self) -> None:
        """Make the model of its source, for frameworks; an engine that reads a file has nothing.

        Raises:
            EngineRefusal: if it can't be made.
        """
        return

    def compile(self) -> int | None:
        """Compile the model, and return the size of what came of it in bytes.

        ``None`` for an engine that compiles nothing ahead. What lies in the folder of the task
        already is used again.

        Raises:
            EngineRefusal: if the engine can't run the model.
        """
        return None

    @abstractmethod
    def open(self) -> Inference:
        """Load the model, ready to be run, and return what runs one inference.

        It is called again for each further session of the case.

        Raises:
            EngineRefusal: if the engine can't run the model.
        """

    def threads(self) -> int:
        """Return the number of threads in force: that of the task, or what the engine has; 0 for
        one that asks others.
        """
        return self.task.threads

    def in_force(self) -> dict[str, str]:
        """Return what the engine reads back of its settings, by their own names."""
        return {}

    def inner_values(  # an engine that can't tell has no use for what it is fed
        self,
        feeds: Mapping[str, Any],  # noqa: ARG002
    ) -> Sequence[InnerValue]:
        """Run one inference, and return what each part of the model gave, in that order.

        Args:
            feeds: Arrays by the names of the inputs.

        Returns:
            Nothing for an engine that can't tell.
        """
        return ()

    def sender(  # most engines have callers
        self,
        feeds: Mapping[str, Any],  # noqa: ARG002
        *,
        timeout_s: float,  # noqa: ARG002
        percents: Sequence[float],  # noqa: ARG002
        holds_failures: bool,  # noqa: ARG002
        right: RightAnswer | None = None,  # noqa: ARG002
    ) -> Sender | None:
        """Return what sends requests as they arrive; ``None`` for an engine that callers call.

        Args:
            feeds: What each request feeds, by the names of the inputs.
            timeout_s: After which a request has failed.
            percents: Percentiles of what it finds out.
            holds_failures: Whether a request that failed is done only when this time is over, as
                one whose answer never came.
            right: What answers are compared with by their values; ``None`` compares none.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Let go of the model; safe to repeat."""


def without_engine(alias: str, leave: str = "Leave") -> str:
    """Return the next step where an engine can't run a model.

    Args:
        alias: What the engine is called in ``--ort-providers``.
        leave: The word that the step begins with.
    """
    return f"{leave} {alias} out of --ort-providers for this model"


def require_types(task: EngineTask, title: str, types: Container[str], *, alias: str = "") -> None:
    """Refuse a task with an input or output of another type than an engine has.

    Args:
        task: What is to run.
        title: Name of the engine.
        types: Those that it has, in ONNX Runtime's spelling.
        alias: What it is called in ``--ort-providers``, where that is not its name in small
            letters.

    Raises:
        EngineRefusal: with the type and the name of the first tensor of another one.
    """
    for item in (*task.inputs, *task.outputs):
        if item.type not in types:
            raise EngineRefusal(
                f"{title} does not support {item.type}, the type of {item.name!r}",
                hint=without_engine(alias or title.lower()),
            )
