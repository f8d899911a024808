"""PyTorch in made environments: its build for CPUs where no GPU is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.runtimes.auto import Hardware
from pytest_ortbench.runtimes.cpu_builds import NoVersion, as_cpu_builds, wants_cpu_build
from pytest_ortbench.runtimes.environments import Environments
from tests.launch.fake_installer import HERE, FakeInstaller, stand_in_check
from tests.launch.test_runtimes_environments import listed

_NOTHING = Hardware(system="linux", machine="x86_64")


@pytest.mark.parametrize(
    ("written", "installed"),
    [
        ("torch==2.13.0", "torch==2.13.0+cpu"),
        ("TorchVision==0.28.0", "TorchVision==0.28.0+cpu"),
        ("torch==2.13.0+cu130", "torch==2.13.0+cu130"),
        ("torch==2.13.0+cpu", "torch==2.13.0+cpu"),
        ("torch @ file:///wheels/torch.whl", "torch @ file:///wheels/torch.whl"),
        ("torchmetrics>=1", "torchmetrics>=1"),
        ("onnxruntime==1.32.0", "onnxruntime==1.32.0"),
    ],
)
def test_a_version_of_torch_becomes_its_build_for_cpus(written: str, installed: str) -> None:
    assert as_cpu_builds([written]) == [installed]


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("torch", "torch"),
        ("torch>=2.5", "torch"),
        ("torch==2.*", "torch"),
        ("torchaudio~=2.1", "torchaudio"),
    ],
)
def test_without_a_version_no_build_can_be_told_apart(text: str, package: str) -> None:
    with pytest.raises(NoVersion) as caught:
        as_cpu_builds(["onnxruntime", text])
    assert caught.value.package == package


def test_an_installer_is_told_of_such_builds_alone() -> None:
    assert wants_cpu_build(["onnxruntime", "torch==2.13.0+cpu"])
    assert not wants_cpu_build(["onnxruntime==1.32.0+cpu", "torch==2.13.0", "torch>=2"])


@pytest.mark.live
@pytest.mark.parametrize(
    ("hardware", "installed"),
    [
        (_NOTHING, "torch==2.13.0+cpu"),
        (replace(_NOTHING, nvidia="/dev/nvidia0"), "torch==2.13.0"),
        (replace(_NOTHING, system="darwin"), "torch==2.13.0"),
    ],
)
def test_an_environment_has_cuda_where_a_gpu_is(
    tmp_path: Path, hardware: Hardware, installed: str
) -> None:
    installer = FakeInstaller()
    environment = _environments(tmp_path, installer, hardware).ensure(
        listed("torch==2.13.0+onnxruntime")
    )
    assert installer.installed[0][:2] == [installed, "onnxruntime"]
    assert environment.manifest.packages["torch"] == installed.partition("==")[2]


@pytest.mark.parametrize(
    ("text", "example"),
    [
        ("torch+onnxruntime", "torch==2.13.0+onnxruntime"),
        ("torch>=2.1+onnxruntime", "torch==2.13.0+onnxruntime"),
        ("torchvision+onnxruntime", "torchvision== "),
    ],
)
def test_an_environment_is_not_made_with_cuda_unasked(
    tmp_path: Path, text: str, example: str
) -> None:
    installer = FakeInstaller()
    with pytest.raises(WorkerError) as caught:
        _environments(tmp_path, installer, _NOTHING).ensure(listed(text))
    assert caught.value.failure.kind == "unavailable"
    assert example in caught.value.hint
    assert installer.installed == []


def _environments(folder: Path, installer: FakeInstaller, hardware: Hardware) -> Environments:
    return Environments(
        folder,
        notify=lambda _: None,
        installer=lambda: installer,
        interpreters=lambda: [HERE],
        check=stand_in_check,
        hardware=lambda: hardware,
    )
