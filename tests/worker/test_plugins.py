"""Plug-in packages and their devices, on stand-ins; real ones are in tests/providers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime
import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker import inspection
from pytest_ortbench.worker import plugins as module
from pytest_ortbench.worker.plugins import (
    Plugin,
    PluginMissing,
    choose,
    device_labels,
    distinct,
    plugin_of,
    plugins,
)


def device(
    kind: str, *, ep: str = "AcmeEP", model: int = 1, options: dict[str, str] | None = None
) -> Any:
    hardware = SimpleNamespace(
        type=SimpleNamespace(name=kind), vendor="Acme", vendor_id=7, device_id=model
    )
    return SimpleNamespace(ep_name=ep, device=hardware, ep_options=options or {})


SEVERAL = [device("CPU"), device("GPU"), device("GPU"), device("GPU", model=2), device("NPU")]


def acme(spec: str = "", alias: str = "acme") -> Provider:
    return Provider(alias=alias, name="AcmeEP", device=spec)


def test_devices_are_named_by_their_hardware() -> None:
    labels = [label for _, label in device_labels(SEVERAL)]
    assert labels == ["cpu", "gpu", "gpu.1", "gpu.2", "npu"]
    # Two of one model give equal numbers: the second is no case of its own under 'all'.
    assert distinct(SEVERAL) == ("cpu", "gpu", "gpu.2", "npu")


@pytest.mark.parametrize(
    ("provider", "index"),
    [
        (acme(), 0),
        (acme("gpu"), 1),
        (acme("gpu.0"), 1),
        (acme("gpu.1"), 2),
        (acme("NPU"), 4),
        (acme("3"), 3),
        # QNN's backends are for certain hardware, or for the CPU that simulates it.
        (acme("htp", alias="qnn"), 4),
        (acme("gpu", alias="qnn"), 1),
        # ggml takes its device as an option.
        (acme("gpu", alias="ggml"), 0),
    ],
)
def test_a_device_is_chosen(provider: Provider, index: int) -> None:
    assert choose(SEVERAL, provider) is SEVERAL[index]


def test_the_simulator_stands_in_for_hardware_that_is_not_here() -> None:
    only = [device("CPU")]
    assert choose(only, acme("htp", alias="qnn")) is only[0]


@pytest.mark.parametrize("spec", ["gpu.7", "npu.1", "9"])
def test_a_device_that_is_not_here_is_named(spec: str) -> None:
    with pytest.raises(PluginMissing, match=rf"'{spec}' .* cpu, gpu, gpu.1"):
        choose(SEVERAL, acme(spec))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path where tests put packages."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    module._candidates.cache_clear()
    yield tmp_path
    module._candidates.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text, encoding="utf-8")


def test_packages_that_follow_the_convention_or_spell_it_their_way(packages: Path) -> None:
    write(
        packages,
        "onnxruntime_ep_two",
        "def get_library_path(): return '/two.so'\n"
        "def get_ep_names(): return ['OneEP', 'TwoEP']\n"
        "def get_ep_name(): return 'OneEP'\n",
    )
    write(
        packages,
        "onnxruntime_single",
        "def get_library_path(): return '/single.so'\ndef get_ep_name(): return 'SingleEP'\n",
    )
    write(packages, "onnxruntime_own", "EP_NAME = 'own'\ndef library_path(): return '/own.so'\n")
    # One whose package has no word for the name of its provider.
    write(packages, "nxrt_ep_cpu", "def get_library_path(): return '/nxrt.so'\n")
    write(packages, "nxrt_ep_other", "def get_library_path(): return '/other.so'\n")
    # Not a plug-in: a library of custom operators, and nothing at all.
    write(packages, "onnxruntime_ops", "def get_library_path(): return '/ops.so'\n")
    write(packages, "onnxruntime_other", "")
    # Known not to be one: importing it would cost a second.
    write(packages, "onnxruntime_genai", "raise RuntimeError('was imported')\n")
    write(packages, "onnxruntime_broken", "raise RuntimeError('no such driver')\n")
    found, problems = plugins({})
    assert {name: plugin.library for name, plugin in found.items()} == {
        "OneEP": "/two.so",
        "TwoEP": "/two.so",
        "SingleEP": "/single.so",
        "own": "/own.so",
        "cpu_ep": "/nxrt.so",
    }
    assert problems == {"onnxruntime_broken": "RuntimeError: no such driver"}


def test_a_configured_library_wins(packages: Path) -> None:
    write(packages, "onnxruntime_own", "EP_NAME='own'\ndef library_path(): return '/own.so'\n")
    found, _ = plugins({"own": "/mine.so", "more": "/more.so"})
    assert (found["own"].library, found["more"].library) == ("/mine.so", "/more.so")


def test_one_plug_in_is_found_without_its_broken_neighbours(packages: Path) -> None:
    write(packages, "onnxruntime_broken", "raise RuntimeError('no such driver')\n")
    write(packages, "onnxruntime_own", "EP_NAME='own'\ndef library_path(): return '/own.so'\n")
    assert plugin_of(Provider(alias="own", name="own")) == Plugin(name="own", library="/own.so")
    assert plugin_of(Provider(alias="x", name="x")) is None
    assert plugin_of(Provider(alias="x", name="x", library="/l.so")) == Plugin(
        name="x", library="/l.so"
    )


def test_a_package_that_should_have_it_and_is_broken_is_told(packages: Path) -> None:
    write(packages, "onnxruntime_ggml", "raise RuntimeError('no bundled library')\n")
    with pytest.raises(PluginMissing, match="onnxruntime_ggml: RuntimeError: no bundled library"):
        plugin_of(Provider(alias="ggml", name="ggml"))


def test_inspection_tells_devices_and_problems(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "empty"):
        library = packages / f"{name}.so"
        library.touch()
        write(
            packages,
            f"onnxruntime_ep_{name}",
            f"def get_library_path(): return {str(library)!r}\n"
            f"def get_ep_name(): return {name!r}\n",
        )
    registered: list[str] = []
    monkeypatch.setattr(module, "_registered", {})
    monkeypatch.setattr(
        onnxruntime,
        "register_execution_provider_library",
        lambda name, _: registered.append(name),
    )
    offered = [device("CPU", ep="CPUExecutionProvider"), device("GPU", ep="good")]
    monkeypatch.setattr(onnxruntime, "get_ep_devices", lambda: offered)
    info = inspection.inspect({})
    assert registered == ["empty", "good"]
    assert info.plugin_providers == ("good",)
    assert info.provider_devices == {"good": ("gpu",)}
    assert info.plugin_problems == {
        "empty": "empty.so has no device here for empty, only for good; ONNX Runtime finds CPU "
        "Acme, GPU Acme"
    }
    assert set(info.plugin_libraries) == {"good", "empty"}
    assert "good" not in info.available_providers
