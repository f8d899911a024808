"""The exported file, on inputs of several sizes."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.passes.fidelity.questions import AskFile, FileAnswered
from pytest_ortbench.worker.accuracy import MAGNITUDES
from pytest_ortbench.worker.inputs import make_feeds, scales, varies
from pytest_ortbench.worker.reference import reference_session
from pytest_ortbench.worker.sample_file import Sample, SampleWriter
from pytest_ortbench.worker.state import WorkerState


def ask_file(question: AskFile, state: WorkerState) -> FileAnswered:
    """Run the file on every choice of sizes, and write what it was fed and answered."""
    state.import_runtime()
    state.enter("fidelity")
    case = question.case
    session = reference_session(case)
    names = tuple(output.name for output in session.get_outputs())
    samples: list[int] = []
    reasons: list[str] = []
    with SampleWriter(Path(question.path), case.model.name, names) as writer:
        for choice in question.choices:
            count, reason = 0, ""
            for number in range(choice.samples if varies(choice.inputs) else 1):
                # The measured magnitude first; sizes alone are asked about at that one.
                scaled = choice.samples >= len(MAGNITUDES) and scales(choice.inputs)
                magnitude = (1.0, 0.1, 10.0)[number % 3] if scaled else 1.0
                feeds = make_feeds(
                    choice.inputs, seed=case.seed, magnitude=magnitude, sample=number
                )
                try:
                    outputs = list(session.run(None, feeds))
                except Exception as error:  # noqa: BLE001 - native errors have no common base
                    reason = _line(error)
                    break
                writer.add(Sample(magnitude=magnitude, feeds=feeds, outputs=outputs))
                count += 1
            samples.append(count)
            reasons.append(reason)
    return FileAnswered(samples=tuple(samples), reasons=tuple(reasons))


def _line(error: Exception) -> str:
    """The first line of a message, which names the node."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
