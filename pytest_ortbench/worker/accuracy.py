"""Accuracy: the same inputs through a reference and through the measured session."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.accuracy import Accuracy, OutputAccuracy
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.errors import first_line
from pytest_ortbench.core.measurement import OutputCheck
from pytest_ortbench.core.precision import has_fixed_ranges
from pytest_ortbench.schema.case_questions import CompareOutputs
from pytest_ortbench.worker.agreement import (
    Difference,
    comparable,
    difference,
    kind_of,
    nonfinite_values,
    worst_figures,
)
from pytest_ortbench.worker.called import Session
from pytest_ortbench.worker.inputs import make_feeds, scales
from pytest_ortbench.worker.outputs import Leaf, flatten
from pytest_ortbench.worker.sample_file import Sample, SampleFile, SampleWriter, open_samples
from pytest_ortbench.worker.slices import SliceSums

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: Factors on drawn float inputs: half precision underflows at small ones and overflows at large.
MAGNITUDES = (0.1, 1.0, 10.0)
#: The factor of the inputs that are timed.
MEASURED = 1.0
#: Input sets of the standard pass, over all magnitudes.
SAMPLES = 8
#: Past these no further sample is added, once each magnitude had one (the size: once one is there).
_MAX_BYTES = 512 * 1024**2
_MAX_SECONDS = 10.0

#: How far the norms of two runs' outputs may differ where the bits do: kernels that add up in
#: another order each time do not change the norm of all outputs by a thousandth.
_NORM_SLACK = 1e-3

#: Single runs on two input sets this far apart are repeated so often, unless that takes too long.
_APART = 1.5
_APART_NS = 100_000
_REPEATS = 2
_MOST_REPEATED_NS = 1_000_000_000
#: Where they stay apart, the slowest and the fastest set are run in so many rounds, or until this
#: time is up; not at all where eight rounds would take longer.
_PAIRS = 16
_FEWEST_PAIRS = 8
_PAIRS_NS = 4_000_000_000

_FLOATS = frozenset({"float16", "float32", "float64"})


Run = Callable[[Mapping[str, object]], Sequence[object]]


def compare_outputs(question: CompareOutputs, measured: MeasuredCase) -> Accuracy:
    """Compare outputs with the reference's."""
    measured.enter("accuracy")
    # Ranges that were fixed beforehand hold at the magnitude that they were taken at.
    magnitudes = (1.0,) if has_fixed_ranges(measured.case) else None
    return compare(measured.for_any_input(), Path(question.reference), magnitudes=magnitudes)


def write_reference(
    path: Path,
    *,
    session: Session,
    specs: Sequence[InputSpec],
    seed: int,
    magnitudes: Sequence[float] = MAGNITUDES,
    label: str = "",
) -> None:
    """Run input sets through the reference and store inputs and outputs together.

    Magnitudes take turns, that of the measured run first; the first set is the one that is timed.
    All sets that a file holds are run; where nothing is drawn, those alone. Large or slow models
    get fewer sets: what is stored is what counts.

    Args:
        path: The file to make; it appears when it is complete.
        session: The reference.
        specs: The inputs, every size resolved.
        seed: Seed of the random inputs.
        magnitudes: Factors on drawn float inputs.
        label: What the reference is, for people; by default its first provider.

    Raises:
        WorkerError: if inputs can't be made.
        Exception: what ONNX Runtime raises if the reference fails on the first set.
    """
    nearest_first = sorted(magnitudes, key=lambda factor: abs(math.log10(factor)))
    factors = nearest_first if scales(specs) else [1.0]
    names = tuple(output.name for output in session.get_outputs())
    started = time.monotonic()
    with SampleWriter(path, label or _label(session), names) as writer:
        stored = max((spec.sets for spec in specs), default=1)
        drawn = any(spec.is_drawn for spec in specs)
        for number in range(max(SAMPLES, stored) if drawn else stored):
            factor = factors[number % len(factors)]
            feeds = make_feeds(specs, seed=seed, magnitude=factor, sample=number)
            try:
                outputs = list(session.run(None, feeds))
            except Exception as error:
                # Native errors have no common base class. What fails at the measured magnitude
                # fails; what fails at another one only is no sample.
                if number == 0:
                    raise
                writer.note = f"the reference failed at magnitude {factor:g}: {first_line(error)}"
                continue
            writer.add(Sample(magnitude=factor, feeds=feeds, outputs=outputs))
            per_sample = writer.bytes_written / (number + 1)
            if writer.bytes_written + per_sample > _MAX_BYTES:
                break
            if number + 1 >= len(factors) and time.monotonic() - started > _MAX_SECONDS:
                break


def compare(
    session: Session,
    path: Path,
    *,
    run: Run | None = None,
    magnitudes: Sequence[float] | None = None,
    budget_s: float = math.inf,
) -> Accuracy:
    """Run the stored input sets and compare with the stored outputs.

    Args:
        session: The session under test.
        path: File of :func:`write_reference`.
        run: How to run it, instead of ``session.run(None, feeds)``.
        magnitudes: Only sets of these magnitudes are compared; ``None`` for all.
        budget_s: Seconds after which no further set is begun, once there is one.

    Returns:
        Figures by output, or the reason why there are none.

    Raises:
        WorkerError: if the file can't be read.
    """
    stored = open_samples(path)
    order, order_note = _output_order(session, stored.names)
    if order is None:
        return Accuracy(reference=stored.reference, reason=order_note)
    collected = Collected()
    started = time.monotonic()
    for sample in stored.samples():
        if collected.magnitudes and time.monotonic() - started > budget_s:
            break
        if magnitudes is not None and sample.magnitude not in magnitudes:
            continue
        feeds, missing = fitting(session, sample.feeds)
        if missing:
            return Accuracy(
                reference=stored.reference,
                reason=f"the reference has no value for the input {missing!r}",
            )
        try:
            began = time.perf_counter_ns()
            outputs = run(feeds) if run is not None else session.run(None, feeds)
            collected.durations_ns.append(time.perf_counter_ns() - began)
            ordered = [outputs[index] for index in order]
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            return Accuracy(
                reference=stored.reference,
                reason=f"the run with inputs of magnitude {sample.magnitude:g} failed: "
                f"{first_line(error)}",
            )
        collected.add(sample, ordered, stored.names)
    accuracy = collected.accuracy(stored, order_note)
    if magnitudes is None:
        run_set = run or partial(session.run, None)
        durations = collected.durations_ns
        if _may_depend(durations) and sum(durations) < _MOST_REPEATED_NS:
            durations = _shortest(run_set, session, stored, durations)
        pairs = _pairs(run_set, session, stored, durations) if _may_depend(durations) else ()
        accuracy = replace(accuracy, set_durations_ns=tuple(durations), set_pairs_ns=pairs)
    return accuracy


def _may_depend(durations_ns: Sequence[int]) -> bool:
    """Whether runs on the sets differ so much that they are worth a second look."""
    if len(durations_ns) < 2:
        return False
    low, high = min(durations_ns), max(durations_ns)
    return high > _APART * low and high - low > _APART_NS


def _shortest(run: Run, session: Session, stored: SampleFile, first_ns: Sequence[int]) -> list[int]:
    """The shortest of several runs on each input set, in turns: what else runs only adds."""
    best = list(first_ns)
    for _ in range(_REPEATS):
        for number, sample in zip(range(len(best)), stored.samples(), strict=False):
            feeds, _ = fitting(session, sample.feeds)
            duration = _duration_ns(run, feeds)
            best[number] = min(best[number], best[number] if duration is None else duration)
    return best


def _pairs(
    run: Run, session: Session, stored: SampleFile, durations_ns: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Rounds on the set that seemed slowest and the one that seemed fastest.

    Each is in random order, so that nothing but the set itself can make it slow in most of them.
    """
    low, high = min(durations_ns), max(durations_ns)
    if _FEWEST_PAIRS * (low + high) > _PAIRS_NS:
        return ()
    chosen = (durations_ns.index(high), durations_ns.index(low))
    feeds = {
        number: fitting(session, sample.feeds)[0]
        for number, sample in enumerate(stored.samples())
        if number in chosen
    }
    draw = random.Random(0)
    rounds: list[tuple[int, int]] = []
    started = time.perf_counter_ns()
    while len(rounds) < _PAIRS and time.perf_counter_ns() - started < _PAIRS_NS:
        durations = {number: _duration_ns(run, feeds[number]) for number in draw.sample(chosen, 2)}
        slow, fast = (durations[number] for number in chosen)
        if slow is None or fast is None:
            break
        rounds.append((slow, fast))
    return tuple(rounds)


def _duration_ns(run: Run, feeds: Mapping[str, object]) -> int | None:
    began = time.perf_counter_ns()
    try:
        run(feeds)
    except Exception:  # noqa: BLE001 - the durations are not judged then: too few rounds
        return None
    return time.perf_counter_ns() - began


class Collected:
    """Differences of all samples so far, by output."""

    def __init__(self) -> None:
        self.magnitudes: list[float] = []
        self.durations_ns: list[int] = []
        self._elements: list[int] = []
        self._kinds: dict[str, str] = {}
        self._differences: dict[str, list[Difference]] = {}
        #: Magnitude of each entry of ``_differences``; an output may be absent in some samples.
        self._at: dict[str, list[float]] = {}
        self._slices: dict[str, SliceSums] = {}

    def add(self, sample: Sample, outputs: Sequence[object], names: Sequence[str]) -> None:
        self.magnitudes.append(sample.magnitude)
        leaves = {leaf.label: leaf for leaf in flatten(outputs, names)}
        self._elements.append(sum(int(leaf.values.size) for leaf in leaves.values()))
        expected = {leaf.label: leaf for leaf in flatten(sample.outputs, names)}
        for label, leaf in expected.items():
            kind = self._kinds.setdefault(label, kind_of(leaf))
            got = leaves.get(label)
            self._note(label, sample, difference(kind, leaf, got))
            if sample.magnitude == MEASURED:
                sums = self._slices.setdefault(label, SliceSums())
                sums.add(leaf.values, None if got is None else got.values)
        for label, leaf in leaves.items():
            if label not in expected:
                self._kinds.setdefault(label, kind_of(leaf))
                self._note(label, sample, _unexpected(leaf))

    def outputs(self) -> tuple[OutputAccuracy, ...]:
        outputs = []
        for label, differences in self._differences.items():
            measured = [
                difference
                for difference, factor in zip(differences, self._at[label], strict=True)
                if factor == MEASURED
            ]
            figures = worst_figures(label, self._kinds[label], differences, measured=measured)
            sums = self._slices.get(label)
            outputs.append(replace(figures, slices=None if sums is None else sums.worst()))
        return tuple(outputs)

    def accuracy(self, stored: SampleFile, order_note: str) -> Accuracy:
        outputs = self.outputs()
        notes = [note for note in (stored.note, order_note) if note]
        for label, differences in self._differences.items():
            notes += self._remarks(label, differences)
        return Accuracy(
            reference=stored.reference,
            samples=len(self.magnitudes),
            magnitudes=tuple(sorted(set(self.magnitudes))),
            outputs=outputs,
            reason="" if outputs else "it has no outputs to compare",
            note="; ".join(notes),
            set_elements=tuple(self._elements),
            set_durations_ns=tuple(self.durations_ns),
        )

    def _note(self, label: str, sample: Sample, difference: Difference) -> None:
        self._differences.setdefault(label, []).append(difference)
        self._at.setdefault(label, []).append(sample.magnitude)

    def _remarks(self, label: str, differences: Sequence[Difference]) -> list[str]:
        remarks = []
        infinite = {
            factor
            for factor, sample in zip(self._at[label], differences, strict=True)
            if not sample.reference_finite
        }
        if infinite:
            count = sum(not sample.reference_finite for sample in differences)
            at = ", ".join(f"{factor:g}" for factor in sorted(infinite))
            kept = comparable(differences)
            outcome = (
                "only finite pairs are compared"
                if len(kept) == len(differences)
                else "it is left out of the figures"
            )
            remarks.append(
                f"the reference of {label!r} is not finite in {count} of {len(differences)} "
                f"samples (magnitude {at}): {outcome}"
            )
        mismatches = [sample.mismatch for sample in differences if sample.mismatch]
        if mismatches:
            remarks.append(
                f"{label!r} {mismatches[0]} ({len(mismatches)} of {len(differences)} samples)"
            )
        return remarks


def repeatability(checks: Sequence[OutputCheck]) -> tuple[bool | None, str]:
    """Whether the runs of the measured loop gave finite outputs that agree with each other.

    Args:
        checks: Looks at the outputs of several runs on the same inputs.

    Returns:
        ``True`` (with a note where the bits differ but the norms of all outputs agree within
        0.1 %), ``False`` and how they differ, or ``None`` where fewer than two were looked at.
    """
    if len(checks) < 2:
        return None, "fewer than two runs were checked"
    first = checks[0]
    drifted = ""
    for check in checks[1:]:
        if check.nonfinite != first.nonfinite:
            return False, (
                f"{check.nonfinite} NaN or infinite values in the {check.run} run, but "
                f"{first.nonfinite} in the {first.run} run"
            )
        if check.digest == first.digest:
            continue
        if check.norm is None or first.norm is None:
            return False, f"outputs of the {check.run} run differ from those of the {first.run} run"
        scale = max(check.norm, first.norm)
        change = abs(check.norm - first.norm) / scale if scale else 0.0
        if change > _NORM_SLACK:
            return False, (
                f"outputs of the {check.run} run differ from those of the {first.run} run: "
                f"their norm by {change:.2g}"
            )
        drifted = (
            f"outputs of the {check.run} run differ in some bits from those of the {first.run} run"
        )
    if first.nonfinite:
        return False, f"{first.nonfinite} NaN or infinite values in every run"
    return True, drifted


def _output_order(session: Session, names: Sequence[str]) -> tuple[list[int] | None, str]:
    """Where each output of the reference stands among the session's; or ``None`` and why not."""
    declared = [output.name for output in session.get_outputs()]
    if set(names) <= set(declared):
        return [declared.index(name) for name in names], ""
    if len(declared) == len(names):
        return list(range(len(names))), (
            "outputs are compared in order, because their names differ"
        )
    return None, (
        f"the outputs differ: {', '.join(declared)}, but {', '.join(names)} in the reference"
    )


def fitting(session: Session, feeds: Mapping[str, object]) -> tuple[dict[str, object], str]:
    """Feeds for this session, floats and integers in its own widths; or the input that is missing.

    A variant may declare other element types than the reference (half-precision inputs), and fewer
    inputs, when one was of no use.
    """
    import numpy as np

    fitting: dict[str, object] = {}
    for declared in session.get_inputs():
        if declared.name not in feeds:
            if declared.type.startswith("optional("):
                continue
            return {}, declared.name
        value = feeds[declared.name]
        wanted = NUMPY_NAMES.get(declared.type[7:-1] if declared.type.startswith("tensor(") else "")
        if isinstance(value, np.ndarray) and wanted is not None and value.dtype.name != wanted:
            both_float = {value.dtype.name, wanted} <= _FLOATS
            if both_float or (value.dtype.kind in "iu" and np.dtype(wanted).kind in "iu"):
                value = value.astype(wanted)
        fitting[declared.name] = value
    return fitting, ""


def _unexpected(leaf: Leaf) -> Difference:
    """A part that the reference lacks, such as a sequence that came out longer."""
    return Difference(
        exact=False,
        nonfinite=nonfinite_values(leaf.values),
        agree=0,
        rows=max(leaf.values.size, 1),
        mismatch="is not in the reference",
    )


def _label(session: object) -> str:
    ask = getattr(session, "get_providers", None)
    providers = list(ask()) if ask is not None else []
    return str(providers[0]) if providers else type(session).__name__
