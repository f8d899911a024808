"""How far a reference differs from itself: run again in ways that don't change what is right.

An optimised session adds up in another order than the reference, which is as right. What such an
order changes shows in the reference alone: with another number of threads, in float64, and on
inputs that no one could tell from the given ones.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_ortbench.core.accuracy import ReferenceSpread, SpreadTrial
from pytest_ortbench.core.errors import first_line
from pytest_ortbench.worker.accuracy import Run, compare
from pytest_ortbench.worker.called import Session

#: Seconds after which a trial takes no further input set.
_TRIAL_S = 10.0

_SEED = 20

#: Makes a session of the reference with so many threads; ``None`` for the usual number.
MakeSession = Callable[[int | None], Session]


def spread_of(
    path: Path,
    make: MakeSession,
    make_wide: Callable[[], Session],
    *,
    magnitudes: Sequence[float] = (),
) -> ReferenceSpread:
    """Run a reference again and compare with its own outputs.

    Args:
        path: File of its feeds and outputs.
        make: Makes its session.
        make_wide: Makes a session of it in float64; whatever it raises is the reason why not.
        magnitudes: Only input sets of these magnitudes; empty for all.
    """
    held_against = functools.partial(_trial, path, magnitudes)
    trials = [
        *_usual(make(None), held_against),
        # One session at a time: a large model may not fit twice.
        held_against("one-thread", make(1)),
    ]
    try:
        trials.append(held_against("float64", make_wide()))
    except Exception as error:  # noqa: BLE001 - onnx, protobuf and ONNX Runtime raise their own
        trials.append(SpreadTrial(name="float64", reason=first_line(error)))
    return ReferenceSpread(trials=tuple(trials))


def _usual(session: Session, held_against: Callable[..., SpreadTrial]) -> Iterator[SpreadTrial]:
    """Run the reference as it was run first: on the same inputs, and on those next to them."""
    yield held_against("again", session)
    for name, ways in (("moved", 1), ("moved-back", -1)):

        def run(feeds: Mapping[str, object], ways: int = ways) -> Sequence[object]:
            return session.run(None, moved(feeds, ways=ways))

        yield held_against(name, session, run)


def _trial(
    path: Path,
    magnitudes: Sequence[float],
    name: str,
    session: Session,
    run: Run | None = None,
) -> SpreadTrial:
    accuracy = compare(session, path, run=run, magnitudes=magnitudes or None, budget_s=_TRIAL_S)
    return SpreadTrial(
        name=name, samples=accuracy.samples, outputs=accuracy.outputs, reason=accuracy.reason
    )


def moved(feeds: Mapping[str, object], *, ways: int) -> dict[str, object]:
    """Return feeds whose float values are one unit in the last place away, up or down by chance.

    Whole numbers stay, since they stand for sizes, counts or indices, where the next number is
    another one.

    Args:
        feeds: Value of every input by name.
        ways: 1, or -1 for the opposite direction of each value.
    """
    import numpy as np

    moved_feeds: dict[str, object] = {}
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            draw = np.random.default_rng(random.Random(f"{_SEED} {name}").getrandbits(32))
            up = draw.integers(0, 2, size=value.shape, dtype=np.int8) * 2 - 1
            towards = np.where(up * ways > 0, np.inf, -np.inf).astype(value.dtype)
            whole = (value == np.rint(value)) | ~np.isfinite(value)
            moved_feeds[name] = np.where(whole, value, np.nextafter(value, towards))
        else:
            moved_feeds[name] = value
    return moved_feeds
