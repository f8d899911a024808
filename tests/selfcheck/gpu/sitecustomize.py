"""Lets ONNX Runtime's CPU provider stand in for CUDA's in every interpreter that finds this.

A rehearsal of what runs on a GPU: a session that is asked for CUDA runs on the CPU, says that it is
CUDA's, and works in the background as a device does, so that somebody has to wait for it. Its
driver and NVML are the stand-ins of ``tests/worker/stand_in``.

``STAND_IN_NEVER_WAITS``: neither a run nor ``synchronize_outputs`` waits for what was started.
``STAND_IN_FALLS_BACK``: the profile of a model file tells that everything ran on the CPU.
``STAND_IN_STALE``: a recorded graph answers what it answered when it was recorded.
``STAND_IN_COARSE``: answers keep four bits of their mantissa, whatever the options say.
``STAND_IN_LOST_SCALE``: a quantised model answers twice what it should.
``STAND_IN_NO_INT8``: every provider, the CPU's as well, computes a quantised model in float32.
``STAND_IN_DROPS``: an inference takes 10 ms, and what a thread beside the main one asks for is
answered with the last answer, without the device.
"""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_OPTIONS = {"device_id": "0", "use_tf32": "1", "enable_cuda_graph": "0", "user_compute_stream": "0"}
#: Inferences that the queue of the device holds.
_QUEUE = 32
#: What an inference takes where some are dropped: more than to hand one over to a busy thread.
_SLOW_S = 0.01
_NO_WAITING = "disable_synchronize_execution_providers"


class Device:
    """What runs in the background, one after the other."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._last: Future[Any] | None = None
        self._room = threading.Semaphore(_QUEUE)

    def start(self, work: Any, stream: str) -> Future[Any]:
        """Start some work behind all other; a full queue takes no more until it has room.

        Events on the stream that the work is put on get the time at which it ends.
        """
        on = ctypes.c_void_p(int(stream))
        self._room.acquire()
        self._driver.stand_in_begin(on)

        def done() -> Any:
            try:
                return work()
            finally:
                self._driver.stand_in_end(on, ctypes.c_int64(time.monotonic_ns()))
                self._room.release()

        self._last = self._worker.submit(done)
        return self._last

    def hold(self, size: int) -> None:
        """Take memory as a session does for its weights."""
        self._driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size))

    def wait(self) -> None:
        """Wait for all that was started."""
        if self._last is not None:
            self._last.result()


def change(ort: Any) -> None:
    """Put the stand-in into the package."""
    never_waits = "STAND_IN_NEVER_WAITS" in os.environ
    falls_back = "STAND_IN_FALLS_BACK" in os.environ
    stale, coarse = "STAND_IN_STALE" in os.environ, "STAND_IN_COARSE" in os.environ
    loses_scale, drops = "STAND_IN_LOST_SCALE" in os.environ, "STAND_IN_DROPS" in os.environ
    without_int8 = "STAND_IN_NO_INT8" in os.environ
    device = Device()
    plain: Any = ort.InferenceSession

    class InferenceSession(plain):  # type: ignore[misc]  # the package has no types
        def __init__(
            self, model: Any, sess_options: Any = None, providers: Any = None, **rest: Any
        ) -> None:
            given = {
                entry if isinstance(entry, str) else entry[0]: {}
                if isinstance(entry, str)
                else dict(entry[1])
                for entry in providers or [CPU]
            }
            self.as_cuda = given.get(CUDA)
            if without_int8 and sess_options is not None:
                sess_options.add_session_config_entry("session.disable_quant_qdq", "1")
            super().__init__(model, sess_options, providers=[CPU], **rest)
            # What a provider is tried with is no file, and runs where it was asked to.
            self.falls_back = falls_back and isinstance(model, str)
            self.replays = stale and (self.as_cuda or {}).get("enable_cuda_graph") == "1"
            self.recorded = False
            self.is_quantised = (
                loses_scale
                and isinstance(model, str)
                and b"QuantizeLinear" in Path(model).read_bytes()
            )
            self.answered: Any = None
            if self.as_cuda is not None and isinstance(model, str):
                device.hold(Path(model).stat().st_size)

        def get_providers(self) -> list[str]:
            return [CUDA, CPU] if self.as_cuda is not None else [CPU]

        def get_provider_options(self) -> dict[str, dict[str, str]]:
            told = {CPU: {}}
            return (
                {CUDA: {**_OPTIONS, **self.as_cuda}, **told} if self.as_cuda is not None else told
            )

        def run(self, names: Any, feeds: Any, options: Any = None) -> Any:
            if self.as_cuda is None:
                return super().run(names, feeds, options)
            if drops:
                if threading.current_thread() is not threading.main_thread():
                    return self.answered
                time.sleep(_SLOW_S)
            answers = super().run(names, feeds, options)
            if coarse:
                answers = [_coarse(answer) for answer in answers]
            if loses_scale and self.is_quantised:
                answers = [2 * answer for answer in answers]
            self.answered = answers
            return answers

        def run_with_iobinding(self, binding: Any, options: Any = None) -> None:
            if self.as_cuda is None:
                super().run_with_iobinding(binding, options)
                return
            if self.replays and self.recorded:
                return
            self.recorded = True
            run = super().run_with_iobinding
            started = device.start(
                lambda: run(binding), self.as_cuda.get("user_compute_stream", "0")
            )
            try:
                waits = options is None or options.get_run_config_entry(_NO_WAITING) != "1"
            except RuntimeError:
                waits = True
            if waits and not never_waits:
                started.result()

        def end_profiling(self) -> str:
            path = str(super().end_profiling())
            if self.as_cuda is not None and not self.falls_back:
                text = Path(path).read_text(encoding="utf-8")
                Path(path).write_text(text.replace(CPU, CUDA), encoding="utf-8")
            return path

        def get_provider_graph_assignment_info(self) -> list[Any]:
            told = super().get_provider_graph_assignment_info()
            return [Assigned(part) for part in told] if self.as_cuda is not None else told

    class Assigned:
        ep_name = CUDA

        def __init__(self, part: Any) -> None:
            self._part = part

        def get_nodes(self) -> Any:
            return self._part.get_nodes()

    ort.InferenceSession = InferenceSession
    ort.get_available_providers = lambda: [CUDA, CPU]
    ort.preload_dlls = lambda *_, **__: None
    binding: Any = ort.IOBinding
    bind_output, synchronise = binding.bind_output, binding.synchronize_outputs
    copy_outputs = binding.copy_outputs_to_cpu

    def bind_on_host(self: Any, name: str, device_type: str = "cpu", *rest: Any) -> None:
        del device_type, rest
        bind_output(self, name, "cpu", 0)

    def wait_for_outputs(self: Any) -> None:
        if not never_waits:
            device.wait()
        synchronise(self)

    def copied(self: Any) -> Any:
        device.wait()
        return copy_outputs(self)

    binding.bind_output = bind_on_host
    binding.synchronize_outputs = wait_for_outputs
    binding.copy_outputs_to_cpu = copied
    value: Any = ort.OrtValue
    from_numpy = value.ortvalue_from_numpy
    value.ortvalue_from_numpy = staticmethod(lambda array, *_, **__: from_numpy(array))


def _coarse(answer: Any) -> Any:
    """An answer whose values keep four bits of their mantissa; what is no float32 stays."""
    if getattr(answer, "dtype", None) != "float32":
        return answer
    return (answer.view("uint32") & 0xFFF80000).view("float32")


class Loader(importlib.abc.Loader):
    """The loader of the package, and the change behind it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        change(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the package where it is."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        del target
        if name != "onnxruntime":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = Loader(spec.loader)
        return spec


sys.meta_path.insert(0, Finder())
