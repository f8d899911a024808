"""Bits that a provider keeps in products, where a partition hides the precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.case_questions import TryProduct
from pytest_ortbench.worker import engine_case, profiling, standard
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


def links(**partitions: int) -> tuple[LinkPlacement, ...]:
    """Links of a chain, and how many partitions each ran."""
    return tuple(
        LinkPlacement(provider=parse_provider(label).name, label=label, partitions=count)
        for label, count in partitions.items()
    )


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
        # No link of the chain ran a partition.
        (
            replace(make_case(), provider=parse_provider("openvino~cpu")),
            replace(IN_A_PARTITION, links=links(openvino=0, cpu=0)),
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


@pytest.mark.parametrize(
    ("partitions", "kept", "bits"),
    [
        ({"openvino": 2, "cpu": 0}, {"openvino": 7}, 7),
        ({"openvino": 2, "cpu": 0}, {"openvino": 23}, 23),
        # The fewest that a link keeps.
        ({"tensorrt": 1, "openvino": 1, "cpu": 0}, {"tensorrt": 10, "openvino": 23}, 10),
        # What one link loses is lost, whatever is known of another.
        ({"tensorrt": 1, "openvino": 1}, {"tensorrt": None, "openvino": 7}, 7),
        # What one link keeps says nothing of another.
        ({"tensorrt": 1, "openvino": 1}, {"tensorrt": None, "openvino": 23}, None),
        ({"tensorrt": 0, "openvino": 1}, {"openvino": None}, None),
    ],
)
def test_of_a_chain_the_links_with_partitions_are_tried(
    monkeypatch: pytest.MonkeyPatch,
    partitions: dict[str, int],
    kept: dict[str, int | None],
    bits: int | None,
) -> None:
    tried = []

    def profiled(
        model: bytes, provider: Provider, *_: object, **__: object
    ) -> tuple[Placement, Lowering]:
        tried.append(provider.label)
        found = kept[provider.label]
        if found is None:
            raise RuntimeError("refused")
        return Placement(provider=provider.name, executed={provider.name: 1}), Lowering(found)

    monkeypatch.setattr(profiling, "profile", profiled)
    case = replace(make_case(), provider=parse_provider("~".join(partitions)))
    placement = replace(IN_A_PARTITION, links=links(**partitions))
    assert profiling.with_product_bits(placement, case, threads=1).product_bits == bits
    assert tried == list(kept)


class LoweringEngine(Engine):
    """An engine that multiplies in as many bits as its option says; without one it refuses."""

    def load(self) -> str:
        return "1"

    def open(self) -> Inference:
        if not self.task.options:
            raise EngineRefusal("no product is known here")
        assert self.task.path.is_file()
        session = Lowering(int(self.task.options["bits"]))
        [given] = self.task.inputs
        return lambda feeds: session.run(None, {"x": feeds[given.name]})

    def close(self) -> None:
        return


def on_engine(monkeypatch: pytest.MonkeyPatch, case: Case, kind: EngineKind) -> int | None:
    monkeypatch.setattr(engine_case, "_kind_of", lambda _: kind)
    monkeypatch.setattr(engine_case, "import_named", lambda _: LoweringEngine)
    opened = engine_case.EngineCase(case, lambda _: None)
    return standard.try_product(TryProduct(), opened).bits


def engine(precision: str = "native", **options: str) -> Case:
    case = make_case(precision=precision)
    return replace(case, provider=replace(parse_provider("tract"), options=options))


PLAIN = EngineKind(alias="tract", title="Tract", target="a:B")


@pytest.mark.parametrize(
    ("case", "kind", "bits"),
    [
        (engine(bits="7"), PLAIN, 7),
        (engine(bits="23"), PLAIN, 23),
        # It can't run the product, or float32 is not what it runs.
        (engine(), PLAIN, None),
        (engine(precision="fp16", bits="7"), PLAIN, None),
        # A framework runs no ONNX file, and a service what it was given.
        (engine(bits="7"), replace(PLAIN, is_framework=True), None),
        (engine(bits="7"), replace(PLAIN, is_endpoint=True), None),
    ],
)
def test_bits_of_an_engine_are_counted_in_a_model_of_its_own(
    monkeypatch: pytest.MonkeyPatch, case: Case, kind: EngineKind, bits: int | None
) -> None:
    assert on_engine(monkeypatch, case, kind) == bits


@pytest.mark.live
def test_the_cpu_for_real_keeps_all() -> None:
    found = profiling.with_product_bits(IN_A_PARTITION, make_case(), threads=1)
    assert found.product_bits == 23
