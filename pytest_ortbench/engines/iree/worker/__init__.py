"""IREE: the file compiled once for the sizes of the case, and one context for each session."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import says
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.engines.seam import (
    NUMPY_TYPES,
    Engine,
    EngineRefusal,
    EngineTensor,
    Inference,
    require_types,
    without_engine,
)

#: Backend of the compiler by driver of the runtime.
_BACKENDS = {
    "local-sync": "llvm-cpu",
    "local-task": "llvm-cpu",
    "vulkan": "vulkan-spirv",
    "cuda": "cuda",
    "hip": "rocm",
}
_TARGET_CPU = "iree-llvmcpu-target-cpu"
#: By default it computes doubles as floats, and then fails at those of inputs and outputs.
_DEMOTE = "iree-input-demote-f64-to-f32"
_WORKER_THREADS = "task_topology_group_count"
_ON_CPU = "measure on the CPU, write --ort-providers=iree:local-task"
#: How messages of the compiler name operators: ``onnx.Unique``, ``'torch.aten.fft_rfft'``.
_OPERATOR = re.compile(r"onnx\.([A-Z]\w*)|'(torch\.(?!operator)[\w.]+)'")
#: What failed in a line of the compiler, behind where.
_ERROR = re.compile(r"\berror: (?:loc\([^)]*\): )?(.*)")
#: How it tells that a tool of its own ended by a signal.
_CRASHED = re.compile(r"^Error code: -(\d+)", re.MULTILINE)
#: Names of the functions of a module that are not the model.
_NOT_THE_MODEL = re.compile(r"^__init$|\$async$")


class Iree(Engine):
    """A model that IREE compiled for the sizes of the case and one driver."""

    _runtime: Any = None  # the package has no types for what is used here
    _device: Any = None
    _compiled: Path | None = None
    _own: OwnFolder | None = None
    _has_answered = False

    def load(self) -> str:
        """Import the runtime, tell it its number of threads, and return its version."""
        import iree.runtime  # the measured thing itself, so its import is timed
        from iree.runtime import version

        self._runtime = iree.runtime
        if self.driver == "local-task":
            iree.runtime.flags.parse_flags(f"--{_WORKER_THREADS}={self.task.threads}")
        return str(version.VERSION)

    @property
    def driver(self) -> str:
        """Driver of the runtime: with one thread, what computes on that of the caller."""
        return self.task.device or ("local-sync" if self.task.threads == 1 else "local-task")

    def compile(self) -> int | None:
        """Compile the file in a process of its own, and return the size of what came of it."""
        require_types(self.task, "IREE", NUMPY_TYPES)
        backend = _BACKENDS.get(self.driver)
        if backend is None:
            raise EngineRefusal(
                f"pytest-ortbench knows no driver {self.driver!r} of IREE",
                kind="unavailable",
                hint=f"Choose one of the drivers {', '.join(_BACKENDS)}, e.g. "
                "--ort-providers=iree:local-task",
            )
        # First the device: nobody should wait a minute to hear that there is none.
        self._open_device()
        path = self._place() / "model.vmfb"
        if not path.is_file():
            self._compile(path, backend)
        self._compiled = path
        return path.stat().st_size

    def open(self) -> Inference:
        """Load the compiled module, and return what hands arrays over and fetches outputs."""
        config = self._runtime.Config(device=self._device)
        module = self._runtime.VmModule.mmap(config.vm_instance, str(self._compiled))
        context = self._runtime.SystemContext(config=config)
        try:
            context.add_vm_module(module)
        except RuntimeError as error:
            raise EngineRefusal(
                f"IREE can't load the model. {runtime_said(str(error))}",
                hint=f"Update the driver of the GPU. To {_ON_CPU}"
                if "INCOMPATIBLE" in str(error) and not self.driver.startswith("local")
                else without_engine("iree"),
            ) from error
        (name,) = (name for name in module.function_names if not _NOT_THE_MODEL.search(name))
        return self._inference(context.modules[module.name][name])

    def in_force(self) -> dict[str, str]:
        """Return the driver, and how many threads of its own this process has."""
        threads = [
            path.read_text(encoding="utf-8") for path in Path("/proc").glob("self/task/*/comm")
        ]
        workers = sum(name.startswith("iree-worker") for name in threads)
        read = {_WORKER_THREADS: str(workers)} if workers else {}
        return {"driver": self.driver, **read}

    def close(self) -> None:
        """Let go of the device, and of what was compiled."""
        self._device = None
        if self._own is not None:
            self._own.close()
            self._own = None

    def _inference(self, function: Any) -> Inference:
        names = [item.name for item in self.task.inputs]
        given = [NUMPY_TYPES[item.type] for item in self.task.outputs]

        fetch = self._fetched

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            try:
                results = function(*[feeds[name] for name in names])
                if len(given) == 1:
                    results = (results,)
                outputs = [
                    fetch(result).astype(type_, copy=False)
                    for result, type_ in zip(results, given, strict=True)
                ]
            except (IndexError, RuntimeError, ValueError) as error:
                # What never answered can't be run; what fails later is a failure.
                kind = "error" if self._has_answered else "unsupported"
                raise EngineRefusal(
                    f"IREE can't run the model. {runtime_said(str(error))}",
                    kind=kind,
                    hint="End other programs that use the memory of the device, and run again"
                    if "RESOURCE_EXHAUSTED" in str(error)
                    else f"Run again. If this happens twice, {without_engine('iree', 'leave')}"
                    if self._has_answered
                    else without_engine("iree"),
                ) from error
            self._has_answered = True
            return outputs

        return infer

    def _fetched(self, result: Any) -> Any:
        """Return an output as an array.

        IREE's own copy has Vulkan write into the array itself where the driver can. *Seen*:
        SwiftShader can, and refuses most arrays, since they begin at no page. Other Vulkan drivers
        can't, and there IREE copies through memory of the device, as is done here for all.
        """
        if self.driver != "vulkan" or result._is_mappable():
            return result.to_host()
        runtime, device, view = self._runtime, self._device, result._buffer_view
        source = view.get_buffer()
        memory, usage = runtime.MemoryType, runtime.BufferUsage
        copied = device.allocator.allocate_buffer(
            memory_type=int(memory.HOST_LOCAL | memory.DEVICE_VISIBLE),
            allowed_usage=int(usage.TRANSFER_TARGET | usage.MAPPING_SCOPED),
            allocation_size=source.byte_length(),
        )
        semaphore = device.create_semaphore(0)
        before, after = (runtime.HalFence.create_at(semaphore, value) for value in (0, 1))
        device.queue_copy(source, copied, wait_semaphores=before, signal_semaphores=after)
        after.wait()
        kind = runtime.HalElementType.map_to_dtype(view.element_type)
        return copied.map().asarray(view.shape, kind)

    def _open_device(self) -> None:
        try:
            self._device = self._runtime.get_device(self.driver)
        except (RuntimeError, ValueError) as error:
            lacking = "the device's own driver"
            if "runtime library not available" in str(error):
                lacking = "the Vulkan library where pytest runs, e.g. with 'apt install libvulkan1'"
            raise EngineRefusal(
                f"IREE can't open the driver {self.driver!r}. {runtime_said(str(error))}",
                kind="unavailable",
                hint=f"To {_ON_CPU}. To use {self.driver}, install {lacking}",
            ) from error

    def _compile(self, path: Path, backend: str) -> None:
        making = path.with_suffix(".making")
        imported = path.with_suffix(".mlirbc")
        asked = {
            "model": str(self.task.path),
            "sizes": sizes_of(self.task.inputs),
            "imported": str(imported),
            "compiled": str(making),
            "target": backend,
            "flags": compiler_flags(backend, self.task.options),
        }
        done = subprocess.run(
            [sys.executable, "-c", _source_of("compiling"), json.dumps(asked)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        imported.unlink(missing_ok=True)
        if done.returncode or not making.is_file():
            raise EngineRefusal(compile_refusal(done.stdout, done.returncode))
        making.replace(path)

    def _place(self) -> Path:
        if self.task.folder is not None:
            return self.task.folder
        self._own = OwnFolder("iree")
        return self._own.path


def sizes_of(inputs: Sequence[EngineTensor]) -> dict[str, list[int]]:
    """Return the sizes of inputs by name.

    Args:
        inputs: Those of the task.
    """
    return {item.name: list(item.shape or ()) for item in inputs}


def compiler_flags(backend: str, options: Mapping[str, str]) -> list[str]:
    """Return what the compiler is told beside the backend.

    Args:
        backend: As the compiler calls it.
        options: As given; each is one of its flags.
    """
    flags = {_DEMOTE: "false"}
    if backend == "llvm-cpu":
        flags[_TARGET_CPU] = "host"
    return [f"--{key}={value}" for key, value in {**flags, **options}.items()]


def compile_refusal(log: str, status: int) -> str:
    """Return in one line why the compiler made nothing.

    Args:
        log: What it printed.
        status: How its process ended; negative for a signal.
    """
    errors = [match[1].strip() for match in map(_ERROR.search, log.splitlines()) if match]
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    quoted = next((text for text in errors if text), lines[-1] if lines else "")
    operators = [match[1] or match[2] for match in _OPERATOR.finditer("\n".join(errors) or log)]
    if operators:
        return f"IREE can't compile the operator {operators[0]}. {says('It', quoted)}"
    crashed = _CRASHED.search(log)
    if status < 0 or crashed:
        return f"IREE's compiler ended by signal {crashed[1] if crashed else -status}"
    return f"IREE can't compile the model. {says('It', quoted)}"


def runtime_said(text: str) -> str:
    """Return a message of the runtime as its words, without the files of its own that it names.

    Args:
        text: The message.
    """
    return says("It", re.sub(r"[^ ]+[.]c:[0-9]+: ", "", " ".join(text.split())))


def _source_of(name: str) -> str:
    """The text of a module beside this one, which may have been sent to this process."""
    module = import_module(f"{__name__}.{name}")
    loader: Any = module.__loader__
    return str(loader.get_source(module.__name__))
