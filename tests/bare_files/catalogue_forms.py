"""Models of the catalogue in several forms: by name, as a copy of the file, and saved anew.

    python -m tests.bare_files.catalogue_forms [NAME…] [--write]

The copy is known by its SHA-256. The one saved anew, as by a tool that changes graphs, has another
digest, so that only its graph and its metadata say what it is fed. Where metadata tells a size,
there is a form that has lost it, too: then the size is a default, and the run asks for it.
``--write`` puts the table where docs/generate.py reads it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.models.catalogue import shipped_catalogue
from pytest_ortbench.models.fetch import fetch_model
from pytest_ortbench.models.told_sizes import told_sizes
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.session import Session
from tests.bare_files.driver import RESULTS, facts_of

FORMS = ("zoo", "file", "anew", "stripped")
PRECISIONS = ("native", "fp16", "int8-dynamic", "int8-static")

Record = dict[str, Any]


def forms_of(name: str, folder: Path) -> dict[str, str]:
    """Return what is named on the command line for each form of a model of the catalogue."""
    entry = shipped_catalogue()[name]
    source = fetch_model(entry, cache=cache_folder(), notify=lambda _: None)
    files = {form: folder / form / f"{name}.onnx" for form in FORMS[1:]}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, files["file"])
    proto = onnx.load(source)
    proto.doc_string = "saved anew"
    onnx.save(proto, files["anew"])
    if told_sizes(source, {item.key: item.value for item in proto.metadata_props}):
        del proto.metadata_props[:]
        onnx.save(proto, files["stripped"])
    else:
        del files["stripped"]
    return {"zoo": f"zoo:{name}"} | {form: str(path) for form, path in files.items()}


def rows_of(
    name: str,
    session: Session,
    folder: Path,
    *,
    precisions: Sequence[str] = PRECISIONS,
    forms: Sequence[str] = FORMS,
) -> Iterator[Record]:
    """Yield a row for each precision of a model, with what became of its forms.

    Args:
        name: Of the catalogue.
        session: Plans and measures.
        folder: For files and reference outputs.
        precisions: Those that are made.
        forms: Those that are measured.
    """
    specs = forms_of(name, folder)
    for precision in precisions:
        row: Record = {"model": name, "precision": precision}
        for form in forms:
            if form not in specs:
                continue
            row[form], row[f"{form}_fed"] = measured(specs[form], precision, session, folder)
        yield row


def measured(
    spec: str, precision: str, session: Session, folder: Path
) -> tuple[Record, dict[str, list[int]]]:
    """Return what became of one form in one precision, and the shapes that it was fed."""
    sampling = Sampling(time_s=0.05, workers=1)
    request = PlanRequest(models=(spec,), precisions=(precision,), sampling=sampling)
    (planned,) = session.plan(request).entries
    shapes = {item.name: list(item.shape) for item in planned.case.inputs}
    try:
        case = session.prepare(planned)
    except WorkerError as error:
        failure = error.failure
        facts = {"status": failure.kind, "reason": failure.message, "flags": [], "sqnr_db": None}
        return facts, shapes
    result = measure(case, session.launcher, folder)
    return facts_of(result, session), {item.name: list(item.shape) for item in case.inputs}


def main(arguments: Sequence[str]) -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(shipped_catalogue()))
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_intermixed_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="forms-") as folder,
        Session(Path(folder), notify=lambda _: None, named_from=Path(folder)) as session,
    ):
        for name in chosen.names:
            rows = []
            for row in rows_of(name, session, Path(folder)):
                rows.append(row)
                told = {
                    form: (row[form]["status"], row[form]["sqnr_db"])
                    for form in FORMS
                    if form in row
                }
                print(name, row["precision"], told, flush=True)
            if chosen.write:
                write(rows)


def write(rows: Sequence[Record]) -> None:
    """Put rows in place of those that were recorded of the same models."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "catalogue.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    names = {row["model"] for row in rows}
    merged = [row for row in kept if row["model"] not in names] + list(rows)
    merged.sort(key=lambda row: list(shipped_catalogue()).index(row["model"]))
    file.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
