"""Settings for all tests of the product itself, and the marker ``needs``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rich
from hypothesis import settings

import pytest_ortbench
from pytest_ortbench.launch import machine_lock
from pytest_ortbench.launch.software_vulkan import software_vulkan
from tests import environment, garbage, inner_runs, tiers, timed_last

if TYPE_CHECKING:
    from pytest_ortbench.launch.launcher import ProcessLauncher

# A test must fail neither because the machine is busy nor because of an example that nobody saw
# before; those are searched for at night.
settings.register_profile("search", deadline=None)
settings.register_profile("product", deadline=None, derandomize=True)
settings.load_profile("product")

#: Where everything that tests need was installed, a test that is skipped for want of it fails.
REQUIRE_ALL = "ORTBENCH_TESTS_REQUIRE_ALL"


@dataclass(frozen=True)
class Need:
    """Something outside of Python packages that a test needs.

    Attributes:
        is_there: Whether this machine has it.
        install: The command that brings it.
    """

    is_there: Callable[[], bool]
    install: str


def _has_program(*names: str) -> Callable[[], bool]:
    def found() -> bool:
        return any(shutil.which(name) or Path("/usr/sbin", name).exists() for name in names)

    return found


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


@cache
def _may_mount() -> bool:
    """Whether a file system in memory can be mounted: root in a container often can't."""
    if not _is_root() or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        if mounted:
            subprocess.run(["umount", folder], check=True)
    return mounted


def _has_compiler() -> bool:
    return _has_program("cc", "gcc", "clang")() or importlib.util.find_spec("ziglang") is not None


def _has_software_vulkan() -> bool:
    """Whether Vulkan's loader is there, and a driver in software that a test can name."""
    found = software_vulkan({})
    return found is not None and found.has_loader and bool(found.installed)


@cache
def _reaches_registry() -> bool:
    """Whether the installer's client can fetch a package: the smallest one that we need anyway."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--retries=1", "--dest", folder, "iniconfig"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


NEEDS: dict[str, Need] = {
    "cc": Need(_has_compiler, "apt-get install gcc libc6-dev (or: pip install ziglang)"),
    "chromium": Need(
        _has_program("chromium", "chromium-browser", "google-chrome"), "apt-get install chromium"
    ),
    "git": Need(_has_program("git"), "apt-get install git"),
    "network": Need(_reaches_registry, "go online, so that pip reaches the package registry"),
    "prometheus": Need(_has_program("prometheus"), "apt-get install prometheus"),
    "vulkan": Need(
        _has_software_vulkan,
        "apt-get install chromium libvulkan1 (SwiftShader, a device in software for WebGPU)",
    ),
    "faketime": Need(_has_program("faketime"), "apt-get install faketime"),
    "openssl": Need(_has_program("openssl"), "apt-get install openssl"),
    "slurm": Need(
        lambda: _has_program("slurmctld")() and _has_program("munged")() and _is_root(),
        "apt-get install slurm-wlm munge, and run the tests as root",
    ),
    "sshd": Need(_has_program("sshd"), "apt-get install openssh-server"),
    "tmpfs": Need(_may_mount, "run the tests as root, where the kernel lets it mount"),
}


@pytest.fixture(scope="session", autouse=True)
def _nothing_known_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the gate's self-test found on this machine must not decide about tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _nobody_waits(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Runs of tests do not wait for each other, nor for what else is measured on this machine."""
    os.environ.pop(machine_lock.HELD, None)
    os.environ[machine_lock.PLACE] = str(tmp_path_factory.mktemp("lock") / "machine.lock")


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[ProcessLauncher]:
    """Starts real workers; native logs are kept in the test's folder."""
    from pytest_ortbench.launch.launcher import ProcessLauncher  # only for tests that start some

    made = ProcessLauncher(log_folder=tmp_path / "logs")
    yield made
    made.close()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Decide how many processes run the tests, before pytest-xdist looks."""
    timed_last.spread(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Return what spreads the tests, where nobody chose another way."""
    return timed_last.TimedLast(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave the tests out of garbage collection."""
    with garbage.left_out():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its tier, and leave heavy ones out unless ``-m`` names them."""
    for item in items:
        item.add_marker(tiers.tier_of(item))
    if tiers.HEAVY not in config.option.markexpr:
        heavy = [item for item in items if item.get_closest_marker(tiers.HEAVY)]
        items[:] = [item for item in items if not item.get_closest_marker(tiers.HEAVY)]
        config.hook.pytest_deselected(items=heavy)
    if hasattr(config, "workerinput"):
        timed_last.arrange(items)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and forget that this process may be one of several."""
    platform.processor()  # starts a process the first time, which no unit test may
    for tier, meaning in tiers.MEANINGS.items():
        config.addinivalue_line("markers", f"{tier}: {meaning}")
    environment.forget()
    guard = tiers.Guard()
    guard.install()
    config.pluginmanager.register(guard, "tests-guard")
    config.addinivalue_line(
        "markers",
        f"needs(*names): skipped with the install command where one of {', '.join(NEEDS)} is "
        f"missing; with {REQUIRE_ALL}=1 it fails instead",
    )


@pytest.fixture(scope="session")
def _everything_of_ours_is_imported() -> None:
    """Import all modules of the package, but for the suites, which pytest itself imports.

    What a run of pytest inside this process imports is forgotten after it, and costs the next run
    half a second. What was imported before it stays.
    """
    for module in pkgutil.walk_packages(pytest_ortbench.__path__, "pytest_ortbench."):
        if not module.name.startswith("pytest_ortbench.suites"):
            importlib.import_module(module.name)
    # What is printed with rich at the first time is kept by modules of ours that stay.
    for module in pkgutil.iter_modules(rich.__path__, "rich."):
        if not any(word in module.name for word in ("__main__", "win", "jupyter")):
            importlib.import_module(module.name)


@pytest.fixture
def empty_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw one empty figure instead of those of a run, and none of a comparison."""
    inner_runs.draw_empty_figures(monkeypatch)


@pytest.fixture
def pytester(
    _everything_of_ours_is_imported: None,
    empty_figures: None,
    monkeypatch: pytest.MonkeyPatch,
    pytester: pytest.Pytester,
) -> pytest.Pytester:
    """Runs pytest in a folder of its own; in this process without what takes its time."""
    inner_runs.take_a_canary_for_measured(monkeypatch)
    inner_runs.ask_interpreters_once(monkeypatch)
    return pytester


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, or fail it, for want of what it needs."""
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            need = NEEDS.get(name)
            if need is None:
                pytest.fail(f"needs({name!r}): known are {', '.join(NEEDS)}", pytrace=False)
            elif not need.is_there():
                missing = f"needs {name}: {need.install}"
                if os.environ.get(REQUIRE_ALL) == "1":
                    pytest.fail(missing, pytrace=False)
                pytest.skip(missing)
