"""``ortbench doctor``: what is installed, what really runs, what makes numbers vary."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.engine_survey import engine_states
from pytest_ortbench.cli.survey import ProviderState, Survey, survey
from pytest_ortbench.cli.terminal import ExitCode, inert, say, step, width
from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.provider_kinds import KINDS
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.launch.noise import Finding, cpu_ticks, noise
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.launch.software_vulkan import SoftwareVulkan, software_vulkan, steps
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.planning.candidates import PROBES_FOLDER
from pytest_ortbench.runtimes.installed import Installed, installed
from pytest_ortbench.runtimes.plugin_config import configured_plugins
from pytest_ortbench.session import Session

#: Width of the names in front of the text.
_COLUMN = 15
#: Facts of the machine that the findings on noise tell better.
_TOLD_BELOW = ("cpus_usable", "cores_usable", "cpu_quota")


@click.command(epilog=epilog("ortbench doctor", "ortbench doctor > machine.txt"))
def command() -> int:
    """Say what is installed, which providers really run and why the others don't, and what makes
    numbers vary on this machine.

    Exit code 3 if nothing could be measured here.
    """
    from pathlib import Path

    before = cpu_ticks()
    quiet = noise(since=before)
    with Session(Path.cwd(), notify=step) as session:
        seen = survey(
            session.launcher,
            Runtime(),
            memory=ProbeMemory(cache_folder() / PROBES_FOLDER),
            plugins=configured_plugins(Path.cwd()),
            on_step=step,
        )
    # The load is taken from before we made some ourselves, what the hypervisor took from meanwhile.
    later = {finding.name: finding for finding in noise(since=before)}
    findings = [later[first.name] if first.name == "steal" else first for first in quiet]
    machine = fingerprint().stable
    engines, vulkan = engine_states(), software_vulkan()
    for line in report(installed(), seen, machine, findings, width(), engines, vulkan):
        say(line)
    return ExitCode.FINE if seen.running else ExitCode.NOTHING


def report(
    packages: Installed,
    seen: Survey,
    machine: dict[str, str],
    findings: Sequence[Finding],
    columns: int,
    engines: Sequence[ProviderState] = (),
    vulkan: SoftwareVulkan | None = None,
) -> list[str]:
    """Return the lines of the report.

    Args:
        packages: What is installed.
        seen: What runs.
        machine: Stable facts of the machine.
        findings: What makes it noisy.
        columns: Width of a line.
        engines: Other engines and frameworks.
        vulkan: What there is for WebGPU in software; ``None`` where nothing can be.
    """
    writer = _Writer(columns)
    _runtime(writer, packages, seen)
    _providers(writer, seen)
    _software_device(writer, seen, vulkan)
    _engines(writer, engines)
    writer.heading("machine")
    for name, value in machine.items():
        if name not in _TOLD_BELOW:
            writer.entry(name.replace("_", " "), value)
    _noise(writer, findings)
    _conclusion(writer, packages, seen, findings)
    return writer.lines


class _Writer:
    """Lines of a report: headings, and entries with a name in front and wrapped text behind."""

    def __init__(self, columns: int) -> None:
        self.lines: list[str] = []
        self._columns = max(columns, 60)
        self._margin = " " * (_COLUMN + 3)

    def heading(self, text: str) -> None:
        if self.lines:
            self.lines.append("")
        self.lines.append(text)

    def entry(self, name: str, text: str, *more: str) -> None:
        """Write an entry, and further paragraphs under it."""
        name, first = inert(name), f"  {inert(name):<{_COLUMN}} "
        if len(name) > _COLUMN:
            self.lines.append(f"  {name}")
            first = self._margin
        for paragraph in (text, *more):
            if paragraph:
                self.lines += textwrap.wrap(
                    inert(paragraph),
                    self._columns,
                    initial_indent=first,
                    subsequent_indent=self._margin,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                first = self._margin

    def command(self, text: str) -> None:
        """Write a command, never wrapped, so that it can be copied."""
        self.lines.append(self._margin + inert(text))


def _runtime(writer: _Writer, packages: Installed, seen: Survey) -> None:
    import platform
    import sys

    writer.heading("installed")
    writer.entry("pytest-ortbench", VERSION)
    writer.entry("python", f"{platform.python_version()}, {sys.executable}")
    for distribution in packages.distributions:
        kind = "" if distribution.brings_package else " (a plug-in provider)"
        writer.entry(distribution.name, f"{distribution.version}{kind}")
    if seen.info is not None:
        writer.entry("in use", f"ONNX Runtime {seen.info.version}, numpy {seen.info.numpy}")
        if seen.info.build:
            writer.entry("build", seen.info.build)
    if seen.failure is not None:
        writer.entry("problem", seen.failure.message, seen.failure.hint)
    for problem in packages.problems():
        writer.entry("problem", problem)
    for number, step_text in enumerate(packages.repair()):
        if not number:
            writer.entry("repair", "in this order:")
        writer.command(step_text)


def _providers(writer: _Writer, seen: Survey) -> None:
    if seen.info is None:
        return
    writer.heading("providers, each tested with tiny models")
    for provider in seen.in_state("runs"):
        writer.entry(provider.alias, "runs")
    for provider in (*seen.in_state("fails"), *seen.in_state("left out")):
        writer.entry(provider.alias, f"{provider.state}: {provider.reason}", provider.hint)
    writer.heading("not installed here; install each in its own environment")
    together: dict[str, list[str]] = {}
    for provider in seen.in_state("absent"):
        together.setdefault(provider.reason, []).append(provider.alias)
    for reason, aliases in together.items():
        writer.entry(", ".join(aliases), reason)
    package = _another_package(seen)
    if package:
        writer.entry(
            "for example",
            f"pytest MODEL.onnx --ort-providers=all --ort-runtimes=current,{package}",
            "makes that environment once, and measures in it as well; yours stays as it is",
        )


def _another_package(seen: Survey) -> str:
    """A package with a provider that is not here, OpenVINO's first: it runs on most CPUs."""
    absent = {state.alias for state in seen.in_state("absent")}
    packages = (KINDS[alias].distributions for alias in ("openvino", *KINDS) if alias in absent)
    return next((names[0] for names in packages if names), "")


def _software_device(writer: _Writer, seen: Survey, vulkan: SoftwareVulkan | None) -> None:
    """The way to a device in software, where WebGPU does not run here, or runs on one."""
    if vulkan is None or ("webgpu" in _aliases(seen.running) and not vulkan.named):
        return
    writer.heading("webgpu without a GPU: a device in software, to see whether a model runs")
    writer.entry("vulkan", *steps(vulkan))


def _aliases(states: Iterable[ProviderState]) -> frozenset[str]:
    return frozenset(state.alias.partition(":")[0] for state in states)


def _engines(writer: _Writer, engines: Sequence[ProviderState]) -> None:
    if not engines:
        return
    writer.heading("other engines and frameworks, from installed packages")
    for engine in engines:
        missing = "" if engine.state == "installed" else f"{engine.state}: "
        writer.entry(engine.alias, f"{missing}{engine.reason}")


def _noise(writer: _Writer, findings: Iterable[Finding]) -> None:
    writer.heading("what makes measurements noisy")
    marks = {"fine": "", "note": "note: ", "noisy": "NOISY: "}
    for finding in findings:
        writer.entry(finding.name, marks[finding.severity] + finding.value, finding.advice)


def _conclusion(
    writer: _Writer, packages: Installed, seen: Survey, findings: Iterable[Finding]
) -> None:
    """The last lines answer the question."""
    writer.heading("so")
    if seen.running:
        writer.entry("measure", f"pytest MODEL.onnx --ort-providers={_joined(seen.running)}")
    else:
        writer.entry("measure", "nothing can be measured here yet: see the problem above")
    if packages.problems():
        writer.entry("first", "repair the installation as shown above")
    noisy = [finding.name for finding in findings if finding.severity == "noisy"]
    if noisy:
        writer.entry("noise", f"{', '.join(noisy)}: see above; intervals will be wide")
    else:
        writer.entry("noise", "nothing was found that you could change")


def _joined(states: Iterable[ProviderState]) -> str:
    return ",".join(state.alias for state in states)
