"""A case that another engine than ONNX Runtime runs, in a process that never loads that."""

from __future__ import annotations

import copy
import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.device_variables import device_variables
from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.errors import UsageError, first_line, says, supply_step
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.measurement import Placement, RuntimeInfo, Startup
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.precision import computed_precision, floor_of
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.engines.seam import (
    Engine,
    EngineRefusal,
    EngineTask,
    EngineTensor,
    Inference,
    InnerValue,
    RightAnswer,
    Sender,
)
from pytest_ortbench.worker.engine_cache import cache_key
from pytest_ortbench.worker.measured import Enter, MeasuredCase
from pytest_ortbench.worker.memory import NoSource, ResidentSource, give_back_free_memory
from pytest_ortbench.worker.products import (
    INPUT,
    OUTPUT,
    SHAPE,
    bits_in,
    identity_product,
)
from pytest_ortbench.worker.runtime import distributions
from pytest_ortbench.worker.sample_file import reference_outputs
from pytest_ortbench.worker.software_device import software_device

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_T = TypeVar("_T")


class EngineSession:
    """What an engine opened, called as a session of ONNX Runtime is.

    Args:
        inference: Runs one inference.
        case: Declares inputs and outputs.
    """

    def __init__(self, inference: Inference, case: Case) -> None:
        self._inference = inference
        self._case = case

    def get_inputs(self) -> Sequence[TensorInfo]:
        """Return the inputs as the file declares them."""
        return self._case.model.inputs

    def get_outputs(self) -> Sequence[TensorInfo]:
        """Return the outputs as the file declares them."""
        return self._case.model.outputs

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, object], /
    ) -> Sequence[object]:
        """Run one inference, and return all outputs, or those that are named."""
        outputs = self._inference(input_feed)
        if output_names is None:
            return outputs
        order = [info.name for info in self._case.model.outputs]
        return [outputs[order.index(name)] for name in output_names]


class EngineCase(MeasuredCase):
    """A case that another engine than ONNX Runtime runs.

    Args:
        case: What to measure.
        enter: Called with each phase as it begins.
        engines: Folder for what engines compile; empty keeps nothing.

    Raises:
        WorkerError: ``unavailable`` if no package brings the engine.
    """

    def __init__(self, case: Case, enter: Enter, *, engines: str = "") -> None:
        super().__init__(case, enter)
        enter("import")
        self._kind = _kind_of(case)
        folder = Path(engines) / cache_key(case) if engines else None
        self._state = "none"
        if folder is not None:
            self._state = "warm" if folder.is_dir() and any(folder.iterdir()) else "cold"
            folder.mkdir(parents=True, exist_ok=True)
        engine: type[Engine] = import_named(self._target(self._kind))
        self._engine = engine(self._assignment(folder))
        self._version = ""
        self._build_ns: int | None = None
        self._compile_ns: int | None = None
        self._compiled_bytes: int | None = None

    def open(self) -> Startup:
        """Import the engine, compile and load the model, and run the first inference."""
        startup = super().open()
        if self._engine.threads() != self.threads:
            self.threads, self.threads_source = self._engine.threads(), self._kind.title
        return replace(
            startup,
            cache=self._state if self._keeps_something() else "none",
            build_ns=self._build_ns,
            compile_ns=self._compile_ns,
            compiled_bytes=self._compiled_bytes,
        )

    def another(self) -> InferenceSession:
        """Load the model a second time, with nothing of the first one, and return what runs it."""
        engine = copy.copy(self._engine)
        self._asked(engine.build)
        self._asked(engine.compile)
        return self._called(self._asked(engine.open))

    def sender(
        self,
        *,
        timeout_s: float,
        percents: Sequence[float],
        holds_failures: bool,
        reference: str = "",
    ) -> Sender | None:
        """Return what sends requests as they arrive, for an engine that asks others."""
        names = [info.name for info in self.case.model.outputs]
        right = reference_outputs(Path(reference), self.feeds, names) if reference else None
        return self._asked(
            lambda: self._engine.sender(
                self.feeds,
                timeout_s=timeout_s,
                percents=percents,
                holds_failures=holds_failures,
                right=RightAnswer(floor=floor_of(self.case), outputs=right),
            ),
            phase="load",
        )

    def memory_source(self) -> ResidentSource:
        """Return where memory is read; that of a service is not that of this process."""
        if self._kind.is_endpoint:
            return NoSource("the memory of a service is not that of its client")
        return super().memory_source()

    def inner_values(self, feeds: Mapping[str, object]) -> Sequence[InnerValue]:
        """Run one inference, and return what each part of the model gave."""
        return self._engine.inner_values(feeds)

    def describe(self) -> RuntimeInfo:
        """Return what this interpreter is; ONNX Runtime may be installed, and is not loaded."""
        import numpy  # comes with every engine

        return RuntimeInfo(
            distributions=distributions(),
            version="",
            python=platform.python_version(),
            numpy=numpy.__version__,
            executable=sys.executable,
            pid=os.getpid(),
            host=platform.node(),
            engine=self._kind.alias,
            engine_version=self._version,
            variables=device_variables(os.environ),
            software_device=software_device(self.case.provider),
        )

    @property
    def unconfirmed(self) -> dict[str, str]:
        """Options that the engine does not read back, and why not."""
        read = self._engine.in_force()
        why = f"{self._kind.title} does not read it back"
        return {
            f"{self._kind.alias}.{key}": why
            for key, value in self.case.provider.options.items()
            if read.get(key) != value
        }

    def options_in_force(self) -> dict[str, str]:
        """Return what the engine reads back of its settings."""
        return self._engine.in_force()

    def placed(self) -> Placement:
        """Return no placement: there are no execution providers."""
        reason = f"{self._kind.title} has no execution providers"
        return Placement(provider=self.case.provider.name, executed={}, reason=reason)

    def product_bits(self) -> int | None:
        """Multiply on the engine of the case with its options; ``None`` where it can't be.

        Frameworks run what they have made themselves, and services what they were given.
        """
        kind = self._kind
        if kind.is_framework or kind.is_endpoint or computed_precision(self.case) != "fp32":
            return None
        with OwnFolder("product") as folder:
            path = folder / "product.onnx"
            model, feeds = identity_product()
            path.write_bytes(model)
            ports = [
                EngineTensor(name=n, type="tensor(float)", shape=SHAPE) for n in (INPUT, OUTPUT)
            ]
            task = replace(
                self._engine.task, path=path, inputs=(ports[0],), outputs=(ports[1],), folder=None
            )
            return _bits_on(type(self._engine)(task), feeds)

    def release(self) -> None:
        """Let go of the model; no block can follow."""
        super().release()
        self._engine.close()
        gc.collect()

    def _target(self, kind: EngineKind) -> str:
        """Return the name of the class that runs the case."""
        source = self.case.model.exported_from
        is_written = source is not None and source.library in kind.libraries
        return kind.writer if is_written else kind.target

    def _import(self) -> int:
        started = time.perf_counter_ns()
        try:
            self._version = self._asked(self._engine.load, phase="import")
        except ImportError as error:
            raise case_error(
                f"{self._kind.title} can't be imported. {says('Python', first_line(error))}",
                supply_in(self.case.runtime, self._kind, error),
                kind="unavailable",
                phase="import",
            ) from error
        return time.perf_counter_ns() - started

    def _initialise(self) -> int | None:
        return None

    def _create(self) -> int:
        with self.watch.counted():
            began = time.perf_counter_ns()
            self._asked(self._engine.build)
            started = time.perf_counter_ns()
            self._compiled_bytes = self._asked(self._engine.compile)
            compiled = time.perf_counter_ns()
            # What compiling left, hundreds of megabytes with some, is none of the model; given back
            # later, outside of what is counted, it would be taken for less than nothing.
            gc.collect()
            give_back_free_memory()
            opening = time.perf_counter_ns()
            first = self._asked(self._engine.open)
            opened = time.perf_counter_ns()
            others = [self._asked(self._engine.open) for _ in range(self.case.sessions - 1)]
        if type(self._engine).build is not Engine.build:
            self._build_ns = started - began
        if type(self._engine).compile is not Engine.compile:
            self._compile_ns = compiled - started
        self.session = self._called(first)
        self.others = [self._called(inference) for inference in others]
        return opened - opening

    def _first_inference(self) -> int:
        return self._asked(super()._first_inference, phase="first")

    def _keeps_something(self) -> bool:
        """Whether what was compiled lies in the folder now, for the next worker."""
        folder = self._engine.folder
        compiled = self._compile_ns is not None and folder is not None
        return compiled and folder is not None and any(folder.iterdir())

    def _called(self, inference: Inference) -> InferenceSession:
        # Whatever calls sessions calls this: a subset of their methods, with the same meaning.
        return cast("InferenceSession", EngineSession(inference, self.case))

    def _asked(self, step: Callable[[], _T], *, phase: str = "session") -> _T:
        try:
            return step()
        except EngineRefusal as error:
            hint = error.hint
            if not hint and error.kind == "unsupported":
                hint = f"Leave {self.case.provider.alias} out of --ort-providers for this model"
            raise case_error(str(error), hint, kind=error.kind, phase=phase) from error

    def _assignment(self, folder: Path | None) -> EngineTask:
        case = self.case
        symbols = {
            info.name: tuple(size if isinstance(size, str) else "" for size in info.shape or ())
            for info in case.model.inputs
        }
        return EngineTask(
            path=Path(case.variant.path),
            inputs=tuple(
                EngineTensor(
                    name=spec.name,
                    type=spec.type,
                    shape=spec.shape,
                    symbols=symbols.get(spec.name, ()),
                )
                for spec in case.inputs
            ),
            outputs=tuple(
                EngineTensor(name=info.name, type=info.type) for info in case.model.outputs
            ),
            threads=self.threads,
            device=case.provider.device,
            options=dict(case.provider.options),
            folder=folder,
            source=case.model.exported_from if self._kind.is_framework else None,
        )


def _bits_on(engine: Engine, feeds: Mapping[str, object]) -> int | None:
    """What the model of the task keeps; ``None`` where the engine does not run it."""
    try:
        engine.load()
        engine.build()
        engine.compile()
        (product,) = engine.open()(feeds)
        return bits_in(product)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - native errors have no common base; the bits stay unknown
        return None
    finally:
        engine.close()


def supply_in(runtime: Runtime, kind: EngineKind, error: ImportError) -> str:
    """Return the next step where an engine can't be imported, for the environment that lacks it.

    Args:
        runtime: Where the case is measured.
        kind: The engine.
        error: What Python said.
    """
    packages = kind.distributions
    if isinstance(error, ModuleNotFoundError) and packages and runtime.requirements:
        made = "+".join((*runtime.requirements, *packages))
        return f"Add the engine to the runtime: '--ort-runtimes={made}'"
    is_command = bool(packages) and not kind.source
    step = supply_step(error, f"Run: {kind.supply}" if is_command else kind.supply, *packages)
    is_current = runtime.label == Runtime().label
    return step if is_current else f"{step}. Do this where the runtime {runtime.label!r} measures"


def _kind_of(case: Case) -> EngineKind:
    alias, label = case.provider.alias, case.runtime.label
    reason = f"the runtime {label!r} has no package that provides the engine {alias!r}"
    made = "+".join(case.runtime.requirements)
    where = "PACKAGE is the package that provides this engine in the environment of pytest"
    hint = (
        f"Write '--ort-runtimes={made}+PACKAGE'. {where}"
        if made
        else f"Where the runtime {label!r} measures, run: {sys.executable} -m pip install PACKAGE. "
        f"{where}"
    )
    try:
        kind = engine_kind(alias)
    except UsageError as error:
        kind, reason, hint = None, f"{error.place}: {error.message}", error.hint
    if kind is None:
        raise case_error(reason, hint, kind="unavailable", phase="import")
    return kind
