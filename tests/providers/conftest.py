"""Real distributions of ONNX Runtime in environments of their own, made once and kept.

They lie in the cache of the tests (``ORTBENCH_TESTS_CACHE``, else beside the user's other caches),
so that only the first run on a machine pays for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.runtimes.environments import Environments
from pytest_ortbench.runtimes.resolve import RUNTIMES_FOLDER, choose_runtimes, current
from tests.providers.cases import Measured, measured

OPENVINO = "onnxruntime-openvino==1.24.1"
#: OpenVINO as a plug-in, for Intel's devices. Its library has what reads compiled models back.
PLUGGED_IN = "onnxruntime==1.32.0+onnxruntime-ep-openvino==1.8.1"
QNN = "onnxruntime==1.32.0+onnxruntime-qnn==2.7.0"
GGML = "onnxruntime==1.30.0+onnxruntime-ggml==0.2.0"
GPU = "onnxruntime-gpu==1.31.1"
#: Runs on a device in software, which Debian's chromium brings.
WEBGPU = "onnxruntime-webgpu==1.27.0"
#: Lets the CPU stand in for TensorRT and CUDA.
STAND_IN = Path(__file__).parent / "chains"
#: Custom operators, and a plug-in that finds no device on a machine without a GPU.
EXTRAS = "onnxruntime==1.32.0+onnxruntime-extensions==0.15.2+onnxruntime-ep-webgpu==0.4.0"


def tests_cache() -> Path:
    """Folder that stands in for the user's cache in these tests."""
    chosen = os.environ.get("ORTBENCH_TESTS_CACHE", "")
    return Path(chosen).absolute() if chosen else platformdirs.user_cache_path("ortbench-tests")


@pytest.fixture(scope="session")
def made_runtime() -> Callable[[str], Runtime]:
    """Return the runtime of a requirement list, made at the first call."""
    environments = Environments(tests_cache() / RUNTIMES_FOLDER, notify=lambda _: None)
    made: dict[str, Runtime] = {}

    def get(spec: str) -> Runtime:
        if spec not in made:
            chosen = choose_runtimes(
                [spec], root=tests_cache(), environments=lambda: environments, notify=lambda _: None
            )
            for failure in chosen.failures.values():
                pytest.fail(f"{spec}: {failure.message}. {failure.hint}", pytrace=False)
            [made[spec]] = chosen.runtimes
        return made[spec]

    return get


@pytest.fixture(scope="session")
def distribution(made_runtime: Callable[[str], Runtime]) -> Callable[[str], Runtime]:
    """Return the same, for what takes minutes or gigabytes: who uses it is heavy."""
    return made_runtime


@pytest.fixture
def plugged_in(launcher: ProcessLauncher, distribution: Callable[[str], Runtime]) -> Runtime:
    """The runtime with the plug-in, which takes Intel's devices only."""
    runtime = distribution(PLUGGED_IN)
    problem = launcher.inspect(runtime).plugin_problems.get("OpenVINOExecutionProvider")
    if problem:
        pytest.skip(problem)
    return runtime


@pytest.fixture
def here() -> Runtime:
    """The interpreter that runs these tests."""
    return current()


@pytest.fixture
def on_stand_ins(here: Runtime) -> Callable[..., Runtime]:
    """Return this interpreter with TensorRT and CUDA, as further variables say."""

    def runtime(**variables: str) -> Runtime:
        inherited = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join(filter(None, (str(STAND_IN), inherited)))
        return replace(here, environment={"PYTHONPATH": path, **variables})

    return runtime


@pytest.fixture
def measure(launcher: ProcessLauncher, tmp_path: Path, here: Runtime) -> Measured:
    """Measure a model file on a provider in a runtime, as briefly as can be."""

    def run(path: Path, spec: str, runtime: Runtime, **kwargs: object) -> CaseResult:
        return measured(launcher, tmp_path / "scratch", here, path, spec, runtime, **kwargs)  # type: ignore[arg-type]  # the keywords of measured

    return run
