"""Two sides that are the same files under the same settings: there is nothing to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.dataset import Boxes
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.gate.measuring.pair import Pair


def identical(pair: Pair) -> bool:
    """Whether both sides run the same bytes in the same way.

    Equal are the model file with its external data, the runtime (so its packages), provider and
    session with all options and the content of their libraries, the inputs, the stages and the
    labelled data. What the sides are called does not count.
    """
    baseline, contender = pair.baseline, pair.contender
    digest = baseline.variant.digest
    return (
        bool(digest)
        and digest == contender.variant.digest
        and _settings(baseline) == _settings(contender)
        and _same_content(_files(baseline), _files(contender))
    )


def _settings(case: Case) -> tuple[object, ...]:
    """All that decides how a case runs, but for the content of files."""
    return (
        replace(case.provider, named=True, library=""),
        case.runtime,
        replace(case.session, custom_ops=()),
        len(case.session.custom_ops),
        case.batch,
        tuple(_drawn(spec) for spec in case.inputs),
        case.concurrency,
        case.sessions,
        case.call,
        case.io,
        case.seed,
        case.added_work,
        None if case.dataset is None else (case.dataset.function, _reading(case.dataset.boxes)),
    )


def _drawn(spec: InputSpec) -> InputSpec:
    """An input without where its values lie and how its sizes are explained."""
    return replace(spec, path="", resolved=())


def _files(case: Case) -> list[str]:
    """Paths of all files that a case reads besides its model; empty for one that it has not."""
    return [
        case.provider.library,
        *case.session.custom_ops,
        *(spec.path for spec in case.inputs),
        case.stages,
        *(("", "") if case.dataset is None else (case.dataset.path, case.dataset.user_code)),
    ]


def _reading(boxes: Boxes | None) -> Boxes | None:
    """How boxes are read, without where the file of a function lies."""
    return None if boxes is None else replace(boxes, adapter="")


def _same_content(paths: Sequence[str], others: Sequence[str]) -> bool:
    return len(paths) == len(others) and all(starmap(_same_file, zip(paths, others, strict=True)))


def _same_file(path: str, other: str) -> bool:
    if path == other:
        return True
    if not path or not other:
        return False
    try:
        return file_digest(Path(path)) == file_digest(Path(other))
    except OSError:
        # A file that can't be read is equal to none.
        return False
