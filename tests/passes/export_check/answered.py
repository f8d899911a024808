"""A network in numpy as a source, and exports of it, right and wrong, that answer in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.export_check.questions import AskSource, SizeChoice
from pytest_ortbench.passes.export_check.worker.source import held_against
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.sample_file import Sample, SampleWriter

NAMES = ("scores", "states")
Answer = Callable[[Mapping[str, Any]], Sequence[Any]]

_DRAW = np.random.default_rng(3)
_WEIGHT = _DRAW.normal(size=(8, 8))
_MEAN, _VARIANCE = _DRAW.normal(size=8), _DRAW.uniform(0.5, 1.5, size=8)


def network(feeds: Mapping[str, Any], *, epsilon: float = 1e-5, kind: str = "float64") -> list[Any]:
    """A normalisation and a linear layer: scores, and the states that they are made of."""
    x = feeds["x"].astype(kind)
    mean, variance, weight = (value.astype(kind) for value in (_MEAN, _VARIANCE, _WEIGHT))
    states = (x - mean) / np.sqrt(variance + np.asarray(epsilon, kind))
    return [(states @ weight).astype("float32"), states.astype("float32")]


def right(feeds: Mapping[str, Any]) -> list[Any]:
    """As an exporter makes it: in float32."""
    return network(feeds, kind="float32")


class Source:
    """A source as a session."""

    def __init__(self, answer: Answer, names: Sequence[str] = NAMES) -> None:
        self._answer = answer
        self._names = names

    def get_inputs(self) -> Sequence[TensorInfo]:
        return [TensorInfo(name="x", type="tensor(float)", shape=("batch", 8))]

    def get_outputs(self) -> Sequence[TensorInfo]:
        return [TensorInfo(name=name, type="tensor(float)", shape=None) for name in self._names]

    def run(self, _: object, feeds: Mapping[str, object], /) -> Sequence[object]:
        return self._answer(feeds)


def inputs(batch: int) -> tuple[InputSpec, ...]:
    """What is fed."""
    return (
        InputSpec(name="x", type="tensor(float)", shape=(batch, 8), hint=ValueHint(kind="normal")),
    )


def checked(
    folder: Path,
    file: Answer,
    source: Answer = network,
    *,
    batches: Sequence[int] = (4, 1, 2, 3),
    another: Answer | None = None,
) -> ExportCheck:
    """Compare a file with a source; the first batch is the usual one."""
    choices = tuple(SizeChoice(inputs=inputs(batch), samples=2) for batch in batches)
    path = folder / "answers.npz"
    samples: list[int] = []
    reasons: list[str] = []
    with SampleWriter(path, "net", NAMES) as writer:
        for choice in choices:
            count, reason = 0, ""
            for number in range(choice.samples):
                feeds = make_feeds(choice.inputs, seed=0, sample=number)
                try:
                    outputs = list(file(feeds))
                except ValueError as error:
                    reason = str(error)
                    break
                writer.add(Sample(magnitude=1.0, feeds=feeds, outputs=outputs))
                count += 1
            samples.append(count)
            reasons.append(reason)
    answered = held_against(
        AskSource(path=str(path), choices=choices, samples=tuple(samples), near_db=120.0),
        Source(source),
        lambda: Source(another or source),
        seed=0,
    )
    named = tuple(
        replace(
            choice,
            sizes={"batch": batch},
            changed=() if batch == batches[0] else ("batch",),
            file_reason=reason,
        )
        for choice, batch, reason in zip(answered.choices, batches, reasons, strict=True)
    )
    return ExportCheck(
        framework="python",
        version="1",
        choices=named,
        confusions=answered.confusions,
        repeats=answered.repeats,
        rebuilds=answered.rebuilds,
        again_reason=answered.again_reason,
    )
