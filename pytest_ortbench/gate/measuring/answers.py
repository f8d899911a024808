"""The answers of the two sides of a pair on the same inputs: raw facts, once a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_ortbench.analysis.reference_spread import is_plain
from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Accuracy, Answers
from pytest_ortbench.core.precision import Floor, floor_of, has_fixed_ranges, precision_of
from pytest_ortbench.gate.measuring.pair import BASELINE, Pair
from pytest_ortbench.gate.numbers.answers import is_below_floor
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.schema.side_questions import CompareSides, WriteOutputs
from pytest_ortbench.worker.accuracy import MAGNITUDES


@dataclass(slots=True)
class Exchange:
    """Hands the outputs of the side that is asked first to the other one, which compares them.

    Attributes:
        pair: The two cases.
        path: The file between them, in a folder that exists.
    """

    pair: Pair
    path: Path
    _types: dict[str, dict[str, str]] = field(default_factory=dict)
    _compared: Accuracy | None = None

    def ask(self, worker: Worker, side: str) -> None:
        """Ask an open worker, after its blocks; what fails is a reason and no error."""
        if self._compared is not None or self._random_ops:
            return
        try:
            if not self._types:
                question = WriteOutputs(
                    path=str(self.path),
                    inputs=self.pair.baseline.inputs,
                    magnitudes=self._magnitudes,
                )
                self._types[side] = worker.ask(question).types
            else:
                is_baseline = side == BASELINE
                compared = worker.ask(CompareSides(path=str(self.path), is_baseline=is_baseline))
                self._types[side] = compared.types
                self._compared = compared.accuracy
        except WorkerError as error:
            self._compared = Accuracy(reason=f"{side}: {error.failure.told}")
        except OSError as error:
            # Outputs of a runtime elsewhere are brought here, where the disk may be full.
            self._compared = Accuracy(
                reason=f"the outputs of the {side} could not be stored: {error}"
            )

    def answers(
        self, baseline: Accuracy | None, contender: Accuracy | None, labels: Mapping[str, Any]
    ) -> Answers:
        """Return what is known of both sides.

        Args:
            baseline: The baseline's outputs against its own reference.
            contender: Likewise of the contender.
            labels: What :func:`compare_labels` found.
        """
        pair = self.pair
        return Answers(
            floor=looser_floor(pair),
            compared=self._compared or Accuracy(reason=self._why_not),
            baseline_outputs=self._types.get(BASELINE, {}),
            contender_outputs=next(
                (types for side, types in self._types.items() if side != BASELINE), {}
            ),
            baseline_accuracy=baseline,
            contender_accuracy=contender,
            random_ops=self._random_ops,
            retyped=_precision(pair.baseline) != _precision(pair.contender),
            plain=is_plain(pair.baseline) and is_plain(pair.contender),
            drawn=any(spec.is_drawn for spec in pair.baseline.inputs),
            **labels,
        )

    @property
    def _random_ops(self) -> tuple[str, ...]:
        sides = (self.pair.baseline, self.pair.contender)
        return tuple(dict.fromkeys(name for case in sides for name in case.model.random_ops))

    @property
    def _why_not(self) -> str:
        if self._random_ops:
            return f"the graph draws random numbers ({', '.join(self._random_ops)})"
        return "the outputs of the two sides were not requested"

    @property
    def _magnitudes(self) -> tuple[float, ...]:
        # Ranges that were fixed beforehand hold at the magnitude that they were taken at.
        fixed = has_fixed_ranges(self.pair.baseline) or has_fixed_ranges(self.pair.contender)
        return (1.0,) if fixed else MAGNITUDES


def with_spreads(answers: Answers, pair: Pair, launcher: Launcher, scratch: Path) -> Answers:
    """Ask the references how far they differ from themselves, if the sides would be condemned.

    Args:
        answers: What both sides answered.
        pair: The two cases.
        launcher: Starts the workers; it asks each reference once.
        scratch: Folder of the reference outputs.
    """
    if not is_below_floor(answers):
        return answers
    return replace(
        answers,
        baseline_accuracy=_with_spread(answers.baseline_accuracy, pair.baseline, launcher, scratch),
        contender_accuracy=_with_spread(
            answers.contender_accuracy, pair.contender, launcher, scratch
        ),
    )


def _with_spread(
    accuracy: Accuracy | None, case: Case, launcher: Launcher, scratch: Path
) -> Accuracy | None:
    if accuracy is None or accuracy.reason or accuracy.spread is not None:
        return accuracy
    magnitudes = (1.0,) if has_fixed_ranges(case) else ()
    try:
        reference = launcher.reference(case, scratch)
        spread = launcher.reference_spread(case, reference, magnitudes)
    except WorkerError as error:
        spread = ReferenceSpread(reason=error.failure.told)
    return replace(accuracy, spread=spread)


def looser_floor(pair: Pair) -> Floor:
    """Return what the outputs of two sides must keep: the looser one of their precisions."""
    baseline_floor, contender_floor = floor_of(pair.baseline), floor_of(pair.contender)
    looser = min(baseline_floor, contender_floor, key=lambda floor: floor.sqnr_db)
    return Floor(
        sqnr_db=looser.sqnr_db,
        agreement=min(baseline_floor.agreement, contender_floor.agreement),
        of=looser.of,
    )


def compare_labels(pair: Pair, launcher: Launcher, scratch: Path) -> dict[str, Any]:
    """Return what passes find on labelled data of both sides, by the field of ``Answers``.

    Args:
        pair: The two cases.
        launcher: Starts the workers.
        scratch: Folder for what the baseline's worker writes.
    """
    return {
        entry.result_field: entry.load(entry.compare_sides)(
            pair.baseline, pair.contender, launcher, scratch
        )
        for entry in PASSES
        if entry.compare_sides
    }


def _precision(case: Case) -> tuple[str, str]:
    """What a side computes in: the precision that it was made to, and that of its file."""
    return case.variant.precision, precision_of(case.model)
