"""Bits that a provider keeps in products, where a partition hides the precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.worker import profiling
from tests.results_factory import make_case
from tests.worker.sessions import CPU

ON_OPENVINO = "OpenVINOExecutionProvider"
IN_A_PARTITION = Placement(provider=ON_OPENVINO, executed={ON_OPENVINO: 1}, partitions=1)


class Lowering:
    """A session that multiplies in as many bits."""

    def __init__(self, bits: int) -> None:
        self._unit = np.float32(2.0**bits)

    def run(self, names: object, feeds: dict[str, Any]) -> list[Any]:
        del names
        return [np.floor(feeds["x"] * self._unit) / self._unit]


def seen(
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
    placement: Placement = IN_A_PARTITION,
    *,
    bits: int = 7,
    executed: str = ON_OPENVINO,
) -> int | None:
    def profiled(model: bytes, *_: object, **__: object) -> tuple[Placement, Lowering]:
        assert model
        return replace(placement, executed={executed: 1}), Lowering(bits)

    monkeypatch.setattr(profiling, "profile", profiled)
    return profiling.with_product_bits(placement, case, threads=1).product_bits


@pytest.mark.parametrize("bits", [7, 10, 23])
def test_bits_of_a_partition_are_counted(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    assert seen(monkeypatch, make_case(provider="openvino"), bits=bits) == bits


def test_a_product_that_another_provider_ran_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen(monkeypatch, make_case(provider="openvino"), executed=CPU) is None


@pytest.mark.parametrize(
    ("case", "placement"),
    [
        # The profile tells the precision of nodes.
        (make_case(provider="openvino"), replace(IN_A_PARTITION, partitions=0)),
        (make_case(provider="openvino", precision="fp16"), IN_A_PARTITION),
        (make_case(provider="openvino", precision="int8-static"), IN_A_PARTITION),
        # Of a chain nobody knows which link multiplied.
        (
            make_case(provider="openvino"),
            replace(IN_A_PARTITION, links=(LinkPlacement(provider=ON_OPENVINO, label="openvino"),)),
        ),
    ],
)
def test_nothing_is_tried_where_nothing_would_be_told(
    monkeypatch: pytest.MonkeyPatch, case: Case, placement: Placement
) -> None:
    assert seen(monkeypatch, case, placement) is None


def test_a_session_that_can_not_be_made_is_no_answer() -> None:
    case = replace(make_case(), provider=parse_provider("cuda"))
    assert profiling.with_product_bits(IN_A_PARTITION, case, threads=1).product_bits is None


@pytest.mark.live
def test_the_cpu_for_real_keeps_all() -> None:
    found = profiling.with_product_bits(IN_A_PARTITION, make_case(), threads=1)
    assert found.product_bits == 23
