"""Which providers are measured in one runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.launch.launcher import ProbeOutcome
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.runtimes.plugin_config import ConfiguredPlugin
from tests.refused import refused

HERE = Runtime()
INFO = RuntimeInfo(
    distributions={},
    version="1.32.0",
    python="3.11.7",
    numpy="2.4.6",
    executable="/usr/bin/python3",
    available_providers=("CUDAExecutionProvider", "CPUExecutionProvider"),
    plugin_providers=("SomebodysEP",),
    provider_devices={"SomebodysEP": ("gpu",)},
)


class Asked:
    """A runtime in which CUDA does not run; counts how often it is asked."""

    def __init__(self, *, broken: bool = False) -> None:
        self.inspected = 0
        self.probed: list[str] = []
        self._broken = broken

    def inspect(self, _: Runtime) -> RuntimeInfo:
        self.inspected += 1
        if self._broken:
            raise WorkerError(
                Failure(kind="unavailable", phase="import", message="without ONNX Runtime")
            )
        return INFO

    def probe(self, _: Runtime, candidates: Sequence[Provider]) -> list[ProbeOutcome]:
        self.probed += [provider.label for provider in candidates]
        return [
            ProbeOutcome(provider=each, usable=each.alias != "cuda", reason="no driver")
            for each in candidates
        ]


def candidates(asked: Asked, *plugins: ConfiguredPlugin) -> Candidates:
    return Candidates(asked, ProbeMemory(None), plugins)  # type: ignore[arg-type]  # two methods are enough


def test_who_names_known_providers_asks_nobody() -> None:
    asked = Asked()
    providers, skips = candidates(asked).providers(HERE, ("cpu", "cuda:1,openvino:GPU"))
    assert [provider.label for provider in providers] == ["cpu", "cuda:1", "openvino:GPU"]
    assert skips == []
    assert (asked.inspected, asked.probed) == (0, [])


def test_all_keeps_what_runs_and_says_why_not() -> None:
    asked = Asked()
    found = candidates(asked)
    providers, skips = found.providers(HERE, ("all",))
    assert [provider.label for provider in providers] == ["cpu", "SomebodysEP"]
    assert [(skip.what, skip.reason) for skip in skips] == [("cuda", "no driver")]
    assert asked.probed == ["cuda", "SomebodysEP"]
    found.providers(HERE, ("all", "cpu"))
    assert asked.inspected == 1


def test_a_named_one_stays_whatever_all_finds() -> None:
    asked = Asked()
    providers, skips = candidates(asked).providers(HERE, ("all", "cuda"))
    assert [(p.label, p.named) for p in providers] == [
        ("cpu", False),
        ("SomebodysEP", False),
        ("cuda", True),
    ]
    assert skips == []


def test_a_name_that_only_the_runtime_knows() -> None:
    providers, _ = candidates(Asked()).providers(HERE, ("SomebodysEP:gpu",))
    assert [(p.label, p.name, p.named) for p in providers] == [
        ("SomebodysEP:gpu", "SomebodysEP", True)
    ]
    with refused(UsageError, "'NobodysEP'"):
        candidates(Asked()).providers(HERE, ("NobodysEP",))


def test_a_runtime_that_can_not_be_asked_becomes_rows() -> None:
    providers, skips = candidates(Asked(broken=True)).providers(HERE, ("all", "SomebodysEP"))
    assert [provider.label for provider in providers] == ["cpu", "SomebodysEP"]
    assert [(skip.what, skip.reason) for skip in skips] == [("all", "without ONNX Runtime")]


def test_plug_ins_of_the_project_reach_the_runtime() -> None:
    mine = ConfiguredPlugin(alias="mine", provider="MineEP", library="/mine.so", options=("speed",))
    more = ConfiguredPlugin(alias="qnn", provider="QNNExecutionProvider", options=("new",))
    found = candidates(Asked(), mine, more)
    assert found.equip(HERE) == replace(HERE, plugins={"MineEP": "/mine.so"})
    [provider], _ = found.providers(HERE, ("mine",))
    assert (provider.alias, provider.name, provider.library) == ("mine", "MineEP", "/mine.so")
    found.check({"mine": {"speed": "11"}, "qnn": {"new": "1", "vtcm_mb": "8"}}, root=Path())
    with refused(UsageError, "qnn", "'newer'"):
        found.check({"qnn": {"newer": "1"}}, root=Path())
    with refused(UsageError, " mine, "):
        found.check({"mine": {"colour": "red"}}, root=Path())
