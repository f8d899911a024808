"""The self-check as a whole: on the CPU for real, and for CUDA on stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selfcheck.rehearsal import check, check_gpu
from tests.worker.stand_in import compile_driver, compile_library

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries")
    compile_driver(folder)
    return compile_library(folder)


def test_the_cpu_for_real(tmp_path: Path) -> None:
    checked = check(
        tmp_path, "--providers=cpu", "--short", "--only=synchronisation,placement,fp32,memory"
    )
    assert checked.lines == {
        "synchronisation": ("unchecked", "host memory"),
        "placement": ("pass", "agrees"),
        "fp32": ("pass", "float32"),
        "memory": ("pass", "agrees"),
    }
    assert checked.code == 0
    # A part of the checks makes no certificate that is kept.
    assert not (tmp_path / "state").exists()
    [certificate] = checked.certificates
    assert (certificate["provider"], certificate["short"]) == ("cpu", True)
    assert all(line["seconds"] > 0 for line in certificate["lines"])


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_a_gpu_that_is_as_it_should_be(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(tmp_path, libraries, "--only=synchronisation,memory,device")
    assert checked.lines == {
        "synchronisation": ("pass", "synchronised"),
        "memory": ("pass", "agrees"),
        "device": ("pass", "same device"),
    }
    assert checked.code == 0
    [certificate] = checked.certificates
    assert certificate["devices"] == {
        "GPU-ab000000-0000-0000-0000-000000000000": "Stand-in, driver 575.99"
    }


@pytest.mark.needs("cc")
def test_a_loop_that_does_not_wait_is_found(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(tmp_path, libraries, "--only=synchronisation", STAND_IN_NEVER_WAITS="1")
    assert (checked.lines, checked.code) == (
        {"synchronisation": ("fail", "not synchronised")},
        1,
    )


@pytest.mark.needs("cc")
def test_of_a_provider_that_falls_back_nothing_passes(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(tmp_path, libraries, STAND_IN_FALLS_BACK="1")
    assert (checked.lines, checked.code) == ({"placement": ("fail", "fallback")}, 1)


@pytest.mark.needs("cc")
def test_another_device_is_found(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(
        tmp_path, libraries, "--only=device", STAND_IN_DEVICES="ok,ok", STAND_IN_SHIFT="1"
    )
    assert (checked.lines, checked.code) == ({"device": ("fail", "another device")}, 1)


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_all_of_a_gpu(tmp_path: Path, libraries: Path) -> None:
    """The stand-in multiplies in fp32 whatever it is asked for, and a check says so."""
    checked = check_gpu(tmp_path, libraries, STAND_IN_LOAD="yes")
    assert checked.lines.pop("fp16") == ("fail", "emulated")
    assert checked.lines.pop("fp32") == ("unchecked", "no TF32")
    # Threads of a CPU scatter more than a device does.
    assert checked.lines.pop("loop")[0] != "fail"
    assert checked.lines.pop("events")[0] != "fail"
    assert {verdict for verdict, _ in checked.lines.values()} == {"pass"}
    assert set(checked.lines) == {
        "synchronisation",
        "placement",
        "accuracy",
        "int8",
        "graphs",
        "callers",
        "memory",
        "device",
        "energy",
        "clocks",
        "load",
    }
    assert sum(line["seconds"] for line in checked.certificates[0]["lines"]) < 300
    assert len(list((tmp_path / "state").rglob("*.json"))) == 1


@pytest.mark.heavy
@pytest.mark.needs("cc")
@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        ("STAND_IN_NEVER_WAITS", {"events": "too fast", "synchronisation": "not synchronised"}),
        ("STAND_IN_COARSE", {"accuracy": "inaccurate", "fp32": "lowered"}),
        ("STAND_IN_STALE", {"graphs": "stale"}),
        ("STAND_IN_FORGETS", {"memory": "meter off"}),
    ],
)
def test_a_fault_fails_its_lines(
    tmp_path: Path, libraries: Path, fault: str, lines: dict[str, str]
) -> None:
    checked = check_gpu(tmp_path, libraries, "--short", f"--only={','.join(lines)}", **{fault: "1"})
    assert checked.lines == {name: ("fail", cause) for name, cause in lines.items()}
    assert checked.code == 1


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_a_device_that_its_heat_holds_back_is_found(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(
        tmp_path, libraries, "--only=energy,clocks", STAND_IN_LOAD="yes", STAND_IN_HOT="1"
    )
    assert checked.lines == {"energy": ("pass", "agrees"), "clocks": ("fail", "held back")}


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_a_wrong_reading_of_power_is_found(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(tmp_path, libraries, "--only=energy,clocks", STAND_IN_LOAD="half")
    assert checked.lines == {"energy": ("fail", "disagrees"), "clocks": ("pass", "steady")}


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_slices_and_a_driver_that_refuses_prove_nothing(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(
        tmp_path,
        libraries,
        "--only=events,memory,device,energy",
        STAND_IN_DEVICES="mig",
        STAND_IN_OFF="cuEventCreate",
    )
    assert {name: verdict for name, (verdict, _) in checked.lines.items()} == dict.fromkeys(
        ("events", "memory", "device", "energy"), "unchecked"
    )
    assert checked.code == 3


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_a_device_that_is_wrong_in_int8_alone_is_found(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(
        tmp_path, libraries, "--short", "--only=accuracy,int8", STAND_IN_LOST_SCALE="1"
    )
    assert checked.lines == {"accuracy": ("pass", "accurate"), "int8": ("fail", "inaccurate")}
    assert checked.code == 1


@pytest.mark.heavy
@pytest.mark.needs("cc")
@pytest.mark.parametrize(
    ("provider", "line"),
    [
        # The CPU has kernels in int8, and leaves them out: a row in int8 is none.
        ("cpu", ("fail", "emulated")),
        # CUDA has none, so that nothing is wrong with it.
        ("cuda", ("unchecked", "no int8")),
    ],
)
def test_int8_that_runs_in_float_is_found(
    tmp_path: Path, libraries: Path, provider: str, line: tuple[str, str]
) -> None:
    checked = check_gpu(
        tmp_path,
        libraries,
        "--short",
        "--only=int8",
        provider=provider,
        STAND_IN_NO_INT8="1",
    )
    assert checked.lines == {"int8": line}


@pytest.mark.heavy
@pytest.mark.needs("cc")
def test_a_load_that_does_not_reach_the_device_is_found(tmp_path: Path, libraries: Path) -> None:
    checked = check_gpu(tmp_path, libraries, "--only=load", STAND_IN_DROPS="1")
    assert (checked.lines, checked.code) == ({"load": ("fail", "too fast")}, 1)
