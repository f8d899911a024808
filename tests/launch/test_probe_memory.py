"""What is remembered of probes, and what makes it forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.launch.launcher import ProbeOutcome
from pytest_ortbench.launch.probe_memory import REFUSED_S, USABLE_S, ProbeMemory, facts

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
CUDA = Provider(alias="cuda", name="CUDAExecutionProvider")
HERE = Runtime(label="current", command=("/usr/bin/python3",))
INFO = RuntimeInfo(
    distributions={"onnxruntime-gpu": "1.31.1"},
    version="1.31.1",
    python="3.11.7",
    numpy="2.4.6",
    executable="/usr/bin/python3",
    devices={"GPU-aa11": "Big, driver 575.1"},
)
REFUSED = Failure(kind="unavailable", phase="session", message="no", hint="install it")


class Counting:
    """Tries providers: CUDA's never runs."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def probe(self, _: Runtime, candidates: Sequence[Provider]) -> list[ProbeOutcome]:
        self.tried += [provider.label for provider in candidates]
        return [
            ProbeOutcome(provider=provider, usable=False, reason="no", failure=REFUSED)
            if provider.alias == "cuda"
            else ProbeOutcome(provider=provider, usable=True, executed={provider.name: 2})
            for provider in candidates
        ]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def prober() -> Counting:
    return Counting()


def test_what_was_tried_is_not_tried_again(tmp_path: Path, prober: Counting, clock: Clock) -> None:
    first = ProbeMemory(tmp_path, now=clock).probe(prober, HERE, INFO, [CPU, CUDA])
    assert [each.fresh for each in first] == [True, True]
    clock.now += 60
    again = ProbeMemory(tmp_path, now=clock).probe(prober, HERE, INFO, [CUDA, CPU])
    assert prober.tried == ["cpu", "cuda"]
    assert [each.fresh for each in again] == [False, False]
    assert [each.at_s for each in again] == [1_000_000.0, 1_000_000.0]
    assert [each.outcome for each in again] == [first[1].outcome, first[0].outcome]
    assert again[0].outcome.failure == REFUSED


@pytest.mark.parametrize(
    ("after_s", "tried"),
    [
        (REFUSED_S - 1, []),
        (REFUSED_S + 1, ["cuda"]),
        (USABLE_S - 1, ["cuda"]),
        (USABLE_S + 1, ["cpu", "cuda"]),
        (-1.0, ["cpu", "cuda"]),  # the clock was set back
    ],
)
def test_what_runs_is_believed_longer_than_what_does_not(
    tmp_path: Path, prober: Counting, clock: Clock, after_s: float, tried: list[str]
) -> None:
    memory = ProbeMemory(tmp_path, now=clock)
    memory.probe(prober, HERE, INFO, [CPU, CUDA])
    prober.tried.clear()
    clock.now += after_s
    memory.probe(prober, HERE, INFO, [CPU, CUDA])
    assert prober.tried == tried


def with_info(**changes: object) -> Callable[[], tuple[Runtime, RuntimeInfo]]:
    return lambda: (HERE, replace(INFO, **changes))  # type: ignore[arg-type]  # its fields


@pytest.mark.parametrize(
    "changed",
    [
        with_info(distributions={"onnxruntime-gpu": "1.32.0"}),
        with_info(distributions={"onnxruntime-gpu": "1.31.1", "onnxruntime-qnn": "2.7.0"}),
        with_info(devices={"GPU-aa11": "Big, driver 580.2"}),
        with_info(devices={}),
        with_info(numpy="1.26.4"),
        with_info(executable="/opt/python3"),
        lambda: (replace(HERE, environment={"LD_LIBRARY_PATH": "/opt/cuda"}), INFO),
        lambda: (replace(HERE, environment={"CUDA_VISIBLE_DEVICES": ""}), INFO),
        lambda: (replace(HERE, environment={"VK_DRIVER_FILES": "/drivers/a.json"}), INFO),
    ],
)
def test_what_it_depends_on_makes_it_forgotten(
    tmp_path: Path,
    prober: Counting,
    clock: Clock,
    changed: Callable[[], tuple[Runtime, RuntimeInfo]],
) -> None:
    memory = ProbeMemory(tmp_path, now=clock)
    memory.probe(prober, HERE, INFO, [CPU])
    memory.probe(prober, *changed(), [CPU])
    assert prober.tried == ["cpu", "cpu"]
    memory.probe(prober, HERE, INFO, [CPU])
    assert prober.tried == ["cpu", "cpu"]


def test_a_new_plug_in_library_is_another_runtime(tmp_path: Path) -> None:
    library = tmp_path / "libep.so"
    library.write_bytes(b"one")
    info = replace(INFO, plugin_libraries={"Ep": str(library)})
    before = facts(HERE, info)
    assert facts(HERE, info) == before
    library.write_bytes(b"another")
    assert facts(HERE, info) != before


def test_a_manifest_of_a_driver_that_changes_is_another_machine(tmp_path: Path) -> None:
    manifest = tmp_path / "driver.json"
    runtime = replace(HERE, environment={"VK_ICD_FILENAMES": str(manifest)})
    before = facts(runtime, INFO)
    assert facts(runtime, INFO) == before
    manifest.write_text("{}", encoding="utf-8")
    assert facts(runtime, INFO) != before


def test_options_and_devices_are_tried_apart(tmp_path: Path, prober: Counting) -> None:
    memory = ProbeMemory(tmp_path)
    second = replace(CUDA, device="1", options={"device_id": "1"})
    memory.probe(prober, HERE, INFO, [CUDA, second])
    assert prober.tried == ["cuda", "cuda:1"]


def test_all_can_be_tried_again(tmp_path: Path, prober: Counting) -> None:
    memory = ProbeMemory(tmp_path)
    memory.probe(prober, HERE, INFO, [CPU])
    [again] = memory.probe(prober, HERE, INFO, [CPU], again=True)
    assert prober.tried == ["cpu", "cpu"]
    assert again.fresh


@pytest.mark.parametrize("content", ["", "[]", "{", '{"cpu": 3}', '{"cpu": {"at_s": 1}}'])
def test_a_file_of_no_use_is_no_memory(tmp_path: Path, prober: Counting, content: str) -> None:
    memory = ProbeMemory(tmp_path)
    memory.probe(prober, HERE, INFO, [CPU])
    [file] = tmp_path.iterdir()
    file.write_text(content, encoding="utf-8")
    memory.probe(prober, HERE, INFO, [CPU])
    assert prober.tried == ["cpu", "cpu"]
    memory.probe(prober, HERE, INFO, [CPU])
    assert prober.tried == ["cpu", "cpu"]


def test_nothing_is_kept_of_another_machine_or_where_nothing_can_be_written(
    tmp_path: Path, prober: Counting
) -> None:
    ProbeMemory(tmp_path / "far").probe(prober, replace(HERE, shares_files=False), INFO, [CPU])
    assert not (tmp_path / "far").exists()
    (tmp_path / "file").touch()
    [found] = ProbeMemory(tmp_path / "file").probe(prober, HERE, INFO, [CPU])
    assert found.outcome.usable
    [found] = ProbeMemory(None).probe(prober, HERE, INFO, [CPU])
    assert found.outcome.usable
