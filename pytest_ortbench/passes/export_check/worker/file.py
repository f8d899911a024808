"""The file's side of an export check: ONNX Runtime runs it on inputs of several sizes."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.errors import first_line
from pytest_ortbench.passes.export_check.questions import AskFile, FileAnswered
from pytest_ortbench.passes.export_check.worker.sets import feeds_of, magnitudes_of
from pytest_ortbench.worker.generation.held_rows import with_held_rows
from pytest_ortbench.worker.reference import reference_session
from pytest_ortbench.worker.sample_file import Sample, SampleWriter
from pytest_ortbench.worker.state import WorkerState


def ask_file(question: AskFile, state: WorkerState) -> FileAnswered:
    """Run the file on every choice of sizes, and write what it was fed and answered."""
    state.import_runtime()
    state.enter("export-check")
    case = question.case
    session = with_held_rows(reference_session(case), case.model.decoder)
    names = tuple(output.name for output in session.get_outputs())
    samples: list[int] = []
    reasons: list[str] = []
    with SampleWriter(Path(question.path), case.model.name, names) as writer:
        for choice in question.choices:
            count, reason = 0, ""
            for number, magnitude in enumerate(magnitudes_of(choice)):
                feeds = feeds_of(choice, number, seed=case.seed)
                try:
                    outputs = list(session.run(None, feeds))
                except Exception as error:  # noqa: BLE001 - native errors have no common base
                    reason = first_line(error)
                    break
                writer.add(Sample(magnitude=magnitude, feeds=feeds, outputs=outputs))
                count += 1
            samples.append(count)
            reasons.append(reason)
    return FileAnswered(samples=tuple(samples), reasons=tuple(reasons))
