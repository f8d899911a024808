"""Whose fault a failed inference is, and what becomes of the requests around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_ortbench.serving.queue import RequestQueue, Waiting
from pytest_ortbench.serving.runner import Expired, InputsRefused, ModelBroken, Runner


class Doubling:
    """A model that doubles rows, fails on negative ones, and at last on all."""

    sample: Mapping[str, Any] = {"x": [1]}

    def __init__(self) -> None:
        self.ran: list[list[int]] = []
        self.gone = False
        self.loses_rows = False

    def run(self, feeds: Mapping[str, Any]) -> Sequence[Any]:
        self.ran.append(feeds["x"])
        if self.gone or min(feeds["x"]) < 0:
            raise RuntimeError("no")
        return [[2 * row for row in feeds["x"]]]

    def joined(self, requests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return {"x": [row for feeds in requests for row in feeds["x"]]}

    def apart(self, outputs: Sequence[Any], rows: Sequence[int]) -> Sequence[Sequence[Any]]:
        if self.loses_rows:
            raise ValueError
        left = list(outputs[0])
        return [[[left.pop(0) for _ in range(count)]] for count in rows]


class Asked:
    """A runner whose requests are made and answered here."""

    def __init__(self) -> None:
        self.model = Doubling()
        self.now = 5.0
        queue = RequestQueue(capacity=9, clock=lambda: self.now)
        self.runner = Runner(self.model, queue, clock=lambda: self.now)
        self.answered: list[Waiting] = []

    def run(self, *rows: list[int], deadline: float = 10.0) -> list[Waiting]:
        self.answered.clear()
        batch = [
            Waiting(
                feeds={"x": own},
                rows=len(own),
                kind=None,
                deadline=deadline,
                answer=self.answered.append,
            )
            for own in rows
        ]
        self.runner.run_batch(batch)
        assert len(self.answered) == len(batch)
        return batch


@pytest.fixture
def asked() -> Asked:
    """A model, nothing of which failed yet."""
    return Asked()


def test_a_batch_is_one_inference(asked: Asked) -> None:
    first, second = asked.run([1, 2], [3])
    assert asked.model.ran == [[1, 2, 3]]
    assert (first.outputs, second.outputs) == ([[2, 4]], [[6]])
    assert {first.together, second.together} == {3}


def test_what_fails_together_is_run_alone(asked: Asked) -> None:
    first, bad, last = asked.run([1], [-1], [3])
    assert (first.outputs, last.outputs) == ([[2]], [[6]])
    assert isinstance(bad.error, InputsRefused)
    assert not asked.runner.broken


def test_outputs_without_a_row_for_each_row_are_made_again_alone(asked: Asked) -> None:
    asked.model.loses_rows = True
    first, second = asked.run([1], [3])
    assert (first.outputs, second.outputs) == ([[2]], [[6]])
    assert (first.together, second.together) == (1, 1)


def test_a_model_that_fails_on_its_sample_is_broken_until_it_runs(asked: Asked) -> None:
    asked.model.gone = True
    (request,) = asked.run([1])
    assert isinstance(request.error, ModelBroken)
    assert asked.runner.broken
    asked.model.gone = False
    (request,) = asked.run([1])
    assert request.error is None
    assert not asked.runner.broken


def test_a_request_that_waited_too_long_is_not_run(asked: Asked) -> None:
    asked.now = 11.0
    (request,) = asked.run([1])
    assert isinstance(request.error, Expired)
    assert asked.model.ran == []
