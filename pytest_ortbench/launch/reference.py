"""What a case is compared with, and which file of reference outputs belongs to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.schema.wire import to_plain


def reference_case(case: Case) -> Case:
    """Return the case whose outputs are right: the named reference, or the model's own file.

    Its inputs have the types that the reference declares; a variant may declare others.
    """
    named = case.model.reference
    model = case.model
    if named is not None:
        model = replace(
            model,
            name=named.name,
            path=named.path,
            digest=named.digest,
            external_files=named.external_files,
        )
    types = (
        named.input_types if named is not None else {info.name: info.type for info in model.inputs}
    )
    inputs = tuple(spec.typed(types.get(spec.name, spec.type)) for spec in case.inputs)
    return replace(case, model=model, inputs=inputs)


def reference_file(case: Case, folder: Path) -> Path:
    """Return where the reference outputs of a case of :func:`reference_case` stand in a folder."""
    return folder / f"reference-{reference_key(case)}.npz"


def release_reference(done: Case, left: Iterable[Case], folder: Path) -> None:
    """Remove the reference outputs of a case where no case that is still to come needs them.

    Args:
        done: A case that was measured.
        left: Those that are still to come.
        folder: Where reference outputs are written.
    """
    file = reference_file(reference_case(done), folder)
    if file.exists() and all(reference_file(reference_case(case), folder) != file for case in left):
        with suppress(OSError):  # where it is open still it goes with its folder
            file.unlink()


def reference_key(case: Case) -> str:
    """Digest over all that decides reference outputs."""
    deciding = {
        "model": case.model.digest,
        "path": case.model.path,
        "inputs": to_plain(case.inputs),
        "expected": to_plain(case.expected),
        "files": [_stamp(spec.path) for spec in case.inputs if spec.path],
        "seed": case.seed,
        "custom_ops": list(case.session.custom_ops),
        "dataset": to_plain(case.dataset),
        "labelled": [_stamp(path) for path in (case.dataset.path, case.dataset.user_code) if path]
        if case.dataset is not None
        else [],
    }
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:24]


def _stamp(path: str) -> list[int]:
    """Size and time of an input file: a changed one is another input."""
    try:
        status = Path(path).stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]
