from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.cli.doctor import report
from pytest_ortbench.cli.survey import ProviderState, Survey, survey
from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.launcher import ProbeOutcome
from pytest_ortbench.launch.noise import Finding
from pytest_ortbench.launch.software_vulkan import SoftwareVulkan
from pytest_ortbench.runtimes.installed import Installed, InstalledDistribution
from tests.results_factory import make_runtime_info

CPU_WHEEL = InstalledDistribution(name="onnxruntime", version="1.32.0", brings_package=True)
CPU = "Example CPU 3000"
SOUND = Installed(distributions=(CPU_WHEEL,), folder="/site/onnxruntime")
MISSING = Failure(
    kind="unavailable",
    phase="session",
    message="libcudnn.so.9 is not here",
    hint="pip install onnxruntime-gpu[cuda,cudnn]",
)


class FakeLauncher:
    """A runtime with a CPU, a GPU without its libraries, a plug-in and Azure."""

    def __init__(self, *, broken: Failure | None = None) -> None:
        self.broken = broken
        self.probed: list[str] = []

    def inspect(self, _):
        if self.broken:
            raise WorkerError(self.broken)
        return replace(
            make_runtime_info(),
            available_providers=(
                "AzureExecutionProvider",
                "CUDAExecutionProvider",
                "CPUExecutionProvider",
            ),
            plugin_providers=("SomebodysExecutionProvider",),
        )

    def probe(self, _, candidates):
        [provider] = candidates
        self.probed.append(provider.label)
        if provider.alias == "cuda":
            return [
                ProbeOutcome(
                    provider=provider, usable=False, reason=MISSING.message, failure=MISSING
                )
            ]
        return [ProbeOutcome(provider=provider, usable=True)]


def states(seen: Survey) -> dict[str, ProviderState]:
    return {each.alias: each for each in seen.providers}


def test_every_provider_is_tried_and_those_that_run_come_first():
    launcher, steps = FakeLauncher(), []
    seen = survey(launcher, Runtime(), on_step=steps.append)
    assert [each.alias for each in seen.running] == ["cpu", "SomebodysExecutionProvider"]
    assert [each.state for each in seen.providers[:4]] == ["runs", "runs", "fails", "left out"]
    found = states(seen)
    assert (found["cuda"].reason, found["cuda"].hint) == (MISSING.message, MISSING.hint)
    assert found["azure"].state == "left out"
    assert found["openvino"].state == "absent"
    assert "onnxruntime-openvino" in found["openvino"].reason.split()
    assert "PyPI:" in found["dnnl"].reason.split()
    assert steps == ["ONNX Runtime", *launcher.probed]
    assert "azure" not in launcher.probed


def test_without_a_runtime_nothing_is_tried():
    broken = Failure(kind="unavailable", phase="import", message="ONNX Runtime is not installed")
    launcher = FakeLauncher(broken=broken)
    seen = survey(launcher, Runtime())
    assert (seen.failure, seen.info, seen.providers) == (broken, None, ())
    assert launcher.probed == []


def lines_of(packages=SOUND, seen=None, findings=(), machine=None, columns=100) -> list[str]:
    seen = survey(FakeLauncher(), Runtime()) if seen is None else seen
    return report(packages, seen, machine or {"cpu": CPU}, findings, columns)


def section(lines: list[str], heading: str) -> list[str]:
    start = next(index for index, line in enumerate(lines) if line.startswith(heading))
    rest = lines[start + 1 :]
    return rest[: rest.index("")] if "" in rest else rest


def test_the_report_of_a_sound_machine():
    lines = lines_of()
    assert "  onnxruntime     1.32.0" in section(lines, "installed")
    providers = section(lines, "providers")
    assert providers[0].split() == ["cpu", "runs"]
    cuda = next(index for index, line in enumerate(providers) if line.startswith("  cuda"))
    assert providers[cuda].endswith(f"fails: {MISSING.message}")
    assert providers[cuda + 1].strip() == MISSING.hint
    absent = section(lines, "not installed here")
    assert {"dnnl", "acl"} <= {line.split()[0] for line in absent}
    assert any("--ort-runtimes=current,onnxruntime-openvino" in line.split() for line in absent)
    assert [line.split(maxsplit=1) for line in section(lines, "machine")] == [["cpu", CPU]]
    measure, noise = (line.split() for line in section(lines, "so"))
    assert measure[0] == "measure"
    assert measure[-1] == "--ort-providers=cpu,SomebodysExecutionProvider"
    assert noise[:2] == ["noise", "nothing"]


def test_the_report_of_two_distributions_ends_with_the_repair():
    both = Installed(
        distributions=(
            CPU_WHEEL,
            InstalledDistribution(
                name="onnxruntime-openvino", version="1.24.1", brings_package=True, replaced=2
            ),
        ),
        leftovers=("onnxruntime/capi/libold.so",),
        folder="/site/onnxruntime",
    )
    lines = lines_of(both)
    text = " ".join(" ".join(section(lines, "installed")).split())
    for name in (
        "onnxruntime==1.32.0",
        "onnxruntime-openvino==1.24.1",
        "onnxruntime/capi/libold.so",
    ):
        assert name in text
    for command in both.repair():
        assert any(line.strip() == command for line in lines), "a command is never wrapped"
    assert ["first", "repair"] in [line.split()[:2] for line in section(lines, "so")]


def test_the_report_of_a_machine_with_nothing():
    broken = Failure(
        kind="unavailable",
        phase="import",
        message="ONNX Runtime is not installed",
        hint="pip install pytest-ortbench[cpu]",
    )
    lines = lines_of(Installed(), Survey(failure=broken), machine={"cpu": "unknown"})
    at = next(index for index, line in enumerate(lines) if line.startswith("  problem "))
    assert lines[at].endswith(f" {broken.message}")
    assert lines[at + 1].strip() == broken.hint
    assert not any(line.startswith("providers") for line in lines)
    assert section(lines, "so")[0].split()[:2] == ["measure", "nothing"]


@pytest.mark.parametrize(
    ("running", "vulkan", "told"),
    [
        ((), SoftwareVulkan(has_loader=True), True),
        ((), None, False),
        (("webgpu",), SoftwareVulkan(has_loader=True), False),
        (("webgpu",), SoftwareVulkan(has_loader=True, named=("/a.json",)), True),
    ],
)
def test_the_way_to_a_device_in_software_is_told_where_it_is_of_use(running, vulkan, told):
    providers = tuple(ProviderState(alias=alias, state="runs") for alias in ("cpu", *running))
    seen = Survey(info=make_runtime_info(), providers=providers)
    lines = report(SOUND, seen, {"cpu": CPU}, [], 100, (), vulkan)
    assert any(line.strip().startswith("vulkan ") for line in lines) is told


def test_what_is_noisy_is_marked_and_summed_up():
    findings = [
        Finding(name="governor", value="powersave", severity="noisy", advice="Set performance"),
        Finding(name="ASLR", value="on", severity="note", advice="Several workers"),
        Finding(name="swap", value="off"),
    ]
    lines = lines_of(findings=findings)
    assert section(lines, "what makes measurements noisy") == [
        "  governor        NOISY: powersave",
        "                  Set performance",
        "  ASLR            note: on",
        "                  Several workers",
        "  swap            off",
    ]
    assert section(lines, "so")[-1].split()[:2] == ["noise", "governor:"]


def test_lines_keep_their_width_and_control_nothing():
    machine = {"a name that is far too long for the column": "word " * 60 + "\x1b[2J\n\rend"}
    lines = lines_of(machine=machine, columns=80)
    wide = [line for line in lines if len(line) > 80]
    assert wide == []
    assert all(line.isprintable() for line in lines)
    assert any(line.endswith("end") for line in lines)


# The commands themselves.


@pytest.mark.live
def test_providers_lists_what_really_runs_here(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path))  # nothing was tried before
    ended = tool("providers")
    assert ended.code == 0
    assert ended.out.splitlines()[0].split() == ["cpu", "runs"]
    assert "openvino" not in ended.out or "openvino  absent" not in ended.out
    assert ended.err == ""


@pytest.fixture
def fake(monkeypatch):
    launcher: Any = FakeLauncher()
    launcher.close = lambda: None
    monkeypatch.setattr("pytest_ortbench.session.ProcessLauncher", lambda **_: launcher)
    return launcher


def test_known_providers_are_listed_when_asked(tool, fake):
    assert "qnn" not in tool("providers").out
    assert "qnn" in tool("providers", "--known").out


def test_without_a_runtime_both_commands_say_so_and_end_with_3(tool, fake):
    fake.broken = Failure(
        kind="unavailable", phase="import", message="ONNX Runtime is not installed", hint="Do so"
    )
    ended = tool("providers")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == f"ortbench: {fake.broken.message}. {fake.broken.hint}\n"
    ended = tool("doctor")
    assert ended.code == 3
    assert fake.broken.message in ended.out


def test_doctor_reports_this_machine(tool, fake, monkeypatch):
    ended = tool("doctor")
    assert (ended.code, ended.err) == (0, "")
    for heading in ("installed", "providers", "machine", "what makes measurements noisy", "so"):
        assert heading in [line.partition(",")[0] for line in ended.out.splitlines()]
    assert "threads" in ended.out
