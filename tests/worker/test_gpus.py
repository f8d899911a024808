"""Which GPU a number or a UUID means."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker import session
from pytest_ortbench.worker.gpus import Gpu, NoSuchGpu, order, ordinal_of
from pytest_ortbench.worker.plugins import ProviderMissing

THREE = [("GPU-aa11", "Big"), ("GPU-ab22", "Big"), ("GPU-cc33", "Big")]


@pytest.mark.parametrize(
    ("setting", "uuids"),
    [
        (None, ["GPU-aa11", "GPU-ab22", "GPU-cc33"]),
        ("2,0", ["GPU-cc33", "GPU-aa11"]),
        ("GPU-ab22", ["GPU-ab22"]),
        ("GPU-ab", ["GPU-ab22"]),
        ("GPU-a", []),  # means two of them: none for CUDA
        (" 1 , GPU-cc ", ["GPU-ab22", "GPU-cc33"]),
        ("MIG-9f", ["MIG-9f"]),
        ("", []),
        ("-1", []),
        ("0,-1,2", ["GPU-aa11"]),
        ("0,7,2", ["GPU-aa11"]),
        ("1,1", []),
    ],
)
def test_the_environment_decides_what_is_visible(setting: str | None, uuids: list[str]) -> None:
    environment = {} if setting is None else {"CUDA_VISIBLE_DEVICES": setting}
    found = order(THREE, environment)
    assert [gpu.uuid for gpu in found] == uuids
    assert [gpu.ordinal for gpu in found] == list(range(len(uuids)))


@pytest.mark.parametrize(
    ("known", "environment", "certain"),
    [
        (THREE, {}, True),
        ([*THREE, ("GPU-dd44", "Small")], {}, False),
        ([*THREE, ("GPU-dd44", "Small")], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, True),
        ([*THREE, ("GPU-dd44", "Small")], {"CUDA_VISIBLE_DEVICES": "3"}, False),
        ([*THREE, ("GPU-dd44", "Small")], {"CUDA_VISIBLE_DEVICES": "GPU-dd"}, True),
    ],
)
def test_cudas_own_order_is_uncertain_among_several_models(
    known: list[tuple[str, str]], environment: dict[str, str], certain: bool
) -> None:
    assert {gpu.certain for gpu in order(known, environment)} == {certain}


def gpu(ordinal: int, uuid: str) -> Gpu:
    return Gpu(ordinal=ordinal, uuid=uuid, name="Big")


@pytest.mark.parametrize(
    ("device", "ordinal"), [("0", 0), ("5", 5), ("GPU-cc33", 1), ("gpu-CC", 1), ("GPU-aa", 0)]
)
def test_an_index_counts_and_a_uuid_is_looked_up(device: str, ordinal: int) -> None:
    assert ordinal_of(device, [gpu(0, "GPU-aa11"), gpu(1, "GPU-cc33")]) == ordinal


@pytest.mark.parametrize(
    ("device", "visible", "message"),
    [
        (
            "GPU-ff",
            [gpu(0, "GPU-aa11")],
            "GPU-ff is not one of the GPUs that CUDA shows this process: GPU-aa11",
        ),
        (
            "GPU-a",
            [gpu(0, "GPU-aa11"), gpu(1, "GPU-ab22")],
            "GPU-a means several of the GPUs that CUDA shows this process: GPU-aa11, GPU-ab22",
        ),
        ("GPU-aa", [], "GPU-aa is not one of the GPUs that CUDA shows this process: none (NVML"),
    ],
)
def test_what_means_no_gpu_is_refused(device: str, visible: list[Gpu], message: str) -> None:
    with pytest.raises(NoSuchGpu) as caught:
        ordinal_of(device, visible)
    assert str(caught.value).startswith(message)


def on(device_id: str) -> Provider:
    return Provider(alias="cuda", name="CUDAExecutionProvider", options={"device_id": device_id})


def test_a_session_gets_the_number_of_a_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "visible_gpus", lambda: [gpu(0, "GPU-aa11"), gpu(1, "GPU-cc33")])
    assert session.options_for(on("GPU-cc33")) == {"device_id": "1"}
    assert session.options_for(on("3")) == {"device_id": "3"}
    with pytest.raises(ProviderMissing, match="GPU-dd "):
        session.options_for(on("GPU-dd"))
