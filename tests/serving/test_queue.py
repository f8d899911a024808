"""The queue of a service: what waits, what leaves together, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pytest_ortbench.serving.queue import QueueClosed, QueueFull, RequestQueue, Waiting


class MovedClock:
    """Seconds that pass when it is told so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def waiting(rows: int = 1, kind: str = "a", name: str = "") -> Waiting:
    return Waiting(feeds={"name": name}, rows=rows, kind=kind, deadline=1e9, answer=lambda _: None)


def filled(
    *requests: Waiting, most_rows: int, clock: Callable[[], float] | None = None, wait_s: float = 0
) -> RequestQueue:
    queue = RequestQueue(
        capacity=100, most_rows=most_rows, wait_s=wait_s, clock=clock or MovedClock()
    )
    for request in requests:
        queue.put(request)
    return queue


def test_without_batches_requests_leave_one_by_one_in_order() -> None:
    first, second = waiting(), waiting()
    queue = filled(first, second, most_rows=1)
    assert [queue.take(), queue.take()] == [[first], [second]]


def test_one_more_than_may_wait_is_refused_until_one_left() -> None:
    queue = RequestQueue(capacity=2)
    queue.put(waiting())
    queue.put(waiting())
    with pytest.raises(QueueFull):
        queue.put(waiting())
    queue.take()
    queue.put(waiting())
    assert len(queue) == 2


@pytest.mark.parametrize(
    ("requests", "most_rows", "batches"),
    [
        ([(1, "a")] * 5, 4, [4, 1]),
        ([(3, "a"), (3, "a"), (1, "a")], 4, [4, 3]),  # the one row that fits overtakes
        ([(9, "a"), (1, "a")], 4, [9, 1]),  # larger than a batch: alone
        ([(1, "a"), (1, "b"), (1, "a"), (1, "b")], 4, [2, 2]),
    ],
)
def test_requests_of_one_kind_leave_together(
    requests: list[tuple[int, str]], most_rows: int, batches: list[int]
) -> None:
    queue = filled(*(waiting(rows, kind) for rows, kind in requests), most_rows=most_rows)
    taken = []
    while len(queue):
        batch = queue.take()
        assert len({request.kind for request in batch}) == 1
        taken.append(sum(request.rows for request in batch))
    assert taken == batches


def test_the_wait_counts_from_the_arrival_of_the_oldest() -> None:
    """A request that has waited as long as a batch may take leaves with what is there."""
    clock = MovedClock()
    queue = filled(waiting(), waiting(), most_rows=8, clock=clock, wait_s=5.0)
    clock.now += 5.0
    assert len(queue.take()) == 2


def test_a_full_batch_does_not_wait() -> None:
    queue = filled(waiting(), waiting(), most_rows=2, wait_s=1e9)
    assert len(queue.take()) == 2


def test_a_request_that_comes_while_a_batch_waits_joins_it() -> None:
    queue = filled(waiting(), most_rows=2, wait_s=1e6)
    taken: list[list[Waiting]] = []
    thread = threading.Thread(target=lambda: taken.append(queue.take()))
    thread.start()
    queue.put(waiting())
    thread.join()
    assert [len(batch) for batch in taken] == [2]


def test_a_closed_queue_hands_out_what_waits_and_takes_no_more() -> None:
    queue = filled(waiting(), most_rows=8, wait_s=1e9)
    queue.close()
    with pytest.raises(QueueClosed):
        queue.put(waiting())
    assert len(queue.take()) == 1
    assert queue.take() == []


def test_closing_wakes_whoever_waits_for_a_request() -> None:
    queue = RequestQueue(capacity=1)
    taken: list[list[Waiting]] = []
    threads = [threading.Thread(target=lambda: taken.append(queue.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue.close()
    for thread in threads:
        thread.join()
    assert taken == [[], [], []]
