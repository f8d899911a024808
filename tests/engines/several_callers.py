"""Run an engine from several threads, and say whether each got the answers to its own questions.

A program of its own, for an interpreter that has the engine's packages::

    python tests/engines/several_callers.py TASK

``TASK`` is a JSON object: ``target`` (``module:class``), ``model``, or ``source`` with
``function``, ``inputs`` (name to size, of float32), ``outputs``, ``threads`` and ``device``. It
prints one JSON line: how many inferences there were, how many were wrong, and whether outputs stay
what they were while others run.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

from pytest_ortbench.core.source import Source
from pytest_ortbench.engines.seam import Engine, EngineTask, EngineTensor, Inference

CALLERS = 3
#: Inferences of each caller.
ROUNDS = 150


def opened(asked: Mapping[str, Any]) -> Inference:
    """Open what a task names, as the worker does."""
    source = asked.get("source")
    task = EngineTask(
        path=Path(asked.get("model", "")),
        inputs=tuple(
            EngineTensor(name=name, type="tensor(float)", shape=tuple(shape))
            for name, shape in asked["inputs"].items()
        ),
        outputs=tuple(EngineTensor(name=name, type="tensor(float)") for name in asked["outputs"]),
        threads=asked["threads"],
        device=asked.get("device", ""),
        source=None
        if source is None
        else Source(path=source, function=asked.get("function", ""), framework="", files=(source,)),
    )
    module, _, name = asked["target"].partition(":")
    engine: Engine = getattr(import_module(module), name)(task)
    engine.load()
    engine.build()
    engine.compile()
    return engine.open()


def drawn(inputs: Mapping[str, Sequence[int]], seed: int) -> dict[str, Any]:
    """Draw values for all inputs."""
    draw = numpy.random.default_rng(seed)
    return {name: draw.normal(size=shape).astype("float32") for name, shape in inputs.items()}


def are_alike(first: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether outputs are the same but for the order of sums."""
    pairs = zip(first, other, strict=True)
    return all(numpy.allclose(one, two, rtol=1e-3, atol=1e-4) for one, two in pairs)


def main(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Run alone, then together, and compare."""
    infer = opened(asked)
    feeds = [drawn(asked["inputs"], seed) for seed in range(2 * CALLERS)]
    held = [infer(values) for values in feeds]
    alone = [[numpy.array(output) for output in infer(values)] for values in feeds]
    wrong = [0] * CALLERS
    errors: list[str] = []

    def call(number: int) -> None:
        try:
            for turn in range(ROUNDS):
                place = 2 * number + turn % 2
                wrong[number] += not are_alike(infer(feeds[place]), alone[place])
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=call, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "inferences": CALLERS * ROUNDS,
        "wrong": sum(wrong),
        "errors": errors,
        "stay": all(map(are_alike, held, alone)),
        "differ": not are_alike(alone[0], alone[1]),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
