"""Why a link of a chain computed nothing: another order is tried, and its answer is believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import CHANGED_FILE, Failure, Placement
from pytest_ortbench.execution.evidence import with_orders
from pytest_ortbench.launch.launcher import Worker
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.case_questions import ProfileOrder
from tests.results_factory import make_case

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"


class Asked:
    """A worker that answers what the test says, and notes which orders it was asked for."""

    def __init__(self, answer: Callable[[tuple[int, ...]], Placement]) -> None:
        self.orders: list[tuple[int, ...]] = []
        self._answer = answer

    def ask(self, question: Any) -> Placement:
        assert isinstance(question, ProfileOrder)
        self.orders.append(question.order)
        return self._answer(question.order)


def chain(spec: str, executed: dict[str, int], **fields: Any) -> tuple[Case, Placement]:
    provider = parse_provider(spec)
    links = tuple(LinkPlacement(provider=each.name, label=each.label) for each in provider.links)
    placement = Placement(provider=provider.name, executed=executed, links=links, **fields)
    return replace(make_case(), provider=provider), placement


def tried(
    case: Case, placement: Placement, answer: Callable[[tuple[int, ...]], Placement]
) -> tuple[list[tuple[int, ...]], list[tuple[str, str, int | None]]]:
    """The orders that were tried, and what is said of each link."""
    worker = Asked(answer)
    found = with_orders(cast("Worker", worker), case, placement)
    assert found is not None
    assert replace(found, links=()) == replace(placement, links=())
    return worker.orders, [(link.idle, link.order, link.executed) for link in found.links]


def never(order: tuple[int, ...]) -> Placement:
    raise AssertionError(f"nobody had to try {order}")


def test_the_nearest_earlier_link_comes_first_and_what_takes_nodes_is_the_answer() -> None:
    case, placement = chain("tensorrt~cuda:1~openvino", {TENSORRT: 2, CUDA: 1})
    executed = {(0, 2, 1): {TENSORRT: 2, CUDA: 1}, (2, 0, 1): {OPENVINO: 3}}
    orders, links = tried(
        case, placement, lambda order: Placement(provider=OPENVINO, executed=executed[order])
    )
    assert orders == [(0, 2, 1), (2, 0, 1)]
    assert links[2] == ("taken", "openvino~tensorrt~cuda:1", 3)
    assert links[:2] == [("", "", None)] * 2


def test_a_link_that_takes_nothing_in_any_order() -> None:
    case, placement = chain("cpu~cuda", {CPU: 4})
    orders, links = tried(case, placement, lambda _: Placement(provider=CUDA, executed={CPU: 4}))
    assert (orders, links[1]) == ([(1, 0)], ("none", "", None))


def test_nothing_is_tried_where_every_node_was_offered() -> None:
    case, placement = chain("tensorrt~cuda~cpu", {CUDA: 4})
    orders, links = tried(case, placement, never)
    # TensorRT was first: it left them. That nothing is left to the CPU is as it should be.
    assert (orders, links) == ([], [("none", "", None), ("", "", None), ("", "", None)])


@pytest.mark.parametrize(
    "answer",
    [
        Placement(provider=CUDA, executed={}, reason="timeout"),
        Placement(provider=CUDA, executed={}, cut_after=9, seen={CUDA: 1}),
        Placement(provider=CUDA, executed={}),
    ],
)
def test_an_order_without_a_whole_profile_proves_nothing(answer: Placement) -> None:
    case, placement = chain("cpu~cuda", {CPU: 4})
    _, links = tried(case, placement, lambda _: answer)
    assert links[1] == ("unknown", "", None)


def test_an_order_that_kills_the_worker_costs_nothing_else() -> None:
    def dies(_: tuple[int, ...]) -> Placement:
        raise WorkerError(Failure(kind="crash", phase="profile", message="killed by SIGSEGV"))

    case, placement = chain("cpu~cuda", {CPU: 4})
    worker = Asked(dies)
    found = with_orders(cast("Worker", worker), case, placement)
    assert found is not None
    assert found.links[1].idle == "unknown"
    assert "SIGSEGV" in found.links[1].reason


def test_a_file_that_changed_meanwhile_is_no_evidence() -> None:
    def changed(_: tuple[int, ...]) -> Placement:
        raise WorkerError(Failure(kind="error", phase=CHANGED_FILE, message="another file"))

    case, placement = chain("cpu~cuda", {CPU: 4})
    with pytest.raises(WorkerError):
        with_orders(cast("Worker", Asked(changed)), case, placement)


@pytest.mark.parametrize(
    ("spec", "executed", "fields"),
    [
        ("cuda~cpu", {CUDA: 3, CPU: 1}, {}),
        # What fell back is a failure, and its reason is that of the failure.
        ("cuda~cpu", {CPU: 4}, {}),
        ("cpu~cuda", {}, {"reason": "timeout"}),
        ("cpu~cuda", {}, {"cut_after": 9, "seen": {CPU: 1}}),
    ],
)
def test_nothing_is_tried_without_need(
    spec: str, executed: dict[str, int], fields: dict[str, Any]
) -> None:
    case, placement = chain(spec, executed, **fields)
    assert with_orders(cast("Worker", Asked(never)), case, placement) == placement


def test_a_provider_by_itself_has_no_order() -> None:
    placement = Placement(provider=CPU, executed={CPU: 4})
    assert with_orders(cast("Worker", Asked(never)), make_case(), placement) == placement
    assert with_orders(cast("Worker", Asked(never)), make_case(), None) is None
