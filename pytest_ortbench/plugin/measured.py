"""What a test reads of a case: its numbers, its verdicts, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pytest_ortbench.core.complaint import LIMIT, PLACEMENT
from pytest_ortbench.passes import registry

if TYPE_CHECKING:
    from pytest_ortbench.analysis.limits import LimitOutcome
    from pytest_ortbench.analysis.rows import Cell
    from pytest_ortbench.analysis.summary import Summary
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.judgement import Judgement
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.core.outcome import Accuracy, CaseResult, Failure, Placement
    from pytest_ortbench.core.quantity import Quantity
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.options import Options


#: Judges the case of a test that is at its end; returns what fails the test.
AtEnd: TypeAlias = "Callable[[pytest.Item, Planned], list[str]]"


def shown_numbers(about: str, numbers: Mapping[str, Quantity | None]) -> str:
    """Return a line a metric, below what they are of, and the names of those that are missing.

    Args:
        about: What they are of.
        numbers: By name; ``None`` for one that was not measured.
    """
    measured = {metric: number for metric, number in numbers.items() if number is not None}
    width = max(map(len, measured), default=0)
    lines = [f"  {metric:{width}}  {number}" for metric, number in measured.items()]
    missing = [metric for metric in numbers if metric not in measured]
    if missing:
        lines.append(f"  not measured: {', '.join(missing)}")
    return "\n".join((about, *lines))


class View:
    """Some metrics of one case; each attribute is a quantity with interval.

    Reading one that was not measured fails the test and says why; ``get`` returns ``None`` instead.
    """

    def __init__(self, bench: Measured, names: dict[str, str]) -> None:
        self._bench = bench
        self._names = names

    def __repr__(self) -> str:
        """Return the case and each metric that was measured so far; nothing is measured for it."""
        return shown_numbers(repr(self._bench), self._bench.numbers_of(self._names))

    def __str__(self) -> str:
        """Return the same of a case that is measured for it: ``print`` shows numbers."""
        _ = self._bench.result
        return repr(self)

    def __getattr__(self, name: str) -> Quantity:
        if name.startswith("_") or name not in self._names:
            known = ", ".join(sorted(self._names))
            raise AttributeError(f"no metric {name!r} here; known: {known}")
        return self._bench.metric(self._names[name])

    def get(self, name: str) -> Quantity | None:
        """Return the metric, or ``None`` if it was not measured."""
        return self._bench.found(self._names[name])


class Measured:
    """What was measured of a model: one case, or several of which :attr:`cases` gives each.

    Measuring is lazy and happens once, whatever asks for it. A number that is read of several cases
    fails the test: none of them is meant more than the others.

    Args:
        bench: The run.
        entries: The cases.
        limits: What each of them must keep.
    """

    def __init__(self, bench: Bench, entries: Sequence[Planned], limits: Sequence[Limit]) -> None:
        self._bench = bench
        self._entries = tuple(entries)
        self._limits = tuple(limits)

    def __getattr__(self, name: str) -> Any:
        """Return what a pass offers to tests: ``energy``, ``load``."""
        for entry in registry.PASSES:
            for _, offer in entry.offers:
                if offer.rpartition(":")[2] == name:
                    return partial(entry.load(offer), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def cases(self) -> tuple[Measured, ...]:
        """Each case by itself, in the order of measuring."""
        return tuple(Measured(self._bench, [entry], self._limits) for entry in self._entries)

    @property
    def _planned(self) -> Planned:
        """The one case; fails the test where there are several, or none."""
        if len(self._entries) != 1:
            ids = ", ".join(self._bench.name_of(entry) for entry in self._entries)
            pytest.fail(
                f"{len(self._entries)} cases were measured ({ids}): read each of them, as in "
                "'for case in measured.cases'"
                if ids
                else "this test has no case of its own: read what ortbench.measure(…) returns",
                pytrace=False,
            )
        return self._entries[0]

    @property
    def options(self) -> Options:
        """What command line and ini file ask for."""
        return self._bench.options

    @property
    def case(self) -> Case:
        """What is measured."""
        return self._planned.case

    @property
    def name(self) -> str:
        """Id of the case, and the runtime where there are several, as the tables name it."""
        return self._bench.collection.name_of(self._planned)

    @property
    def result(self) -> CaseResult:
        """The raw facts; skips or fails the test if the case gave no number."""
        result = self._raw
        if result.failure is not None:
            self._raise(result)
        return result

    @property
    def outcome(self) -> CaseResult:
        """The raw facts, also of a case that gave no number."""
        return self._raw

    @property
    def status(self) -> str:
        """``measured``, or the kind of its failure: ``unsupported``, ``timeout``, ``crash``, …."""
        return self._raw.status

    @property
    def failure(self) -> Failure | None:
        """Why there is no number; ``None`` for a case that was measured."""
        return self._raw.failure

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the reasons to trust the numbers less."""
        return tuple(flag.name for flag in self._raw.flags)

    @property
    def row(self) -> dict[str, Cell]:
        """The case as ``ortbench export`` writes it: a value for every column, in SI units."""
        from pytest_ortbench.analysis.rows import row

        summary = self._bench.session.summary_of(self._raw)
        return row(self._raw, self._bench.execution.header, summary)

    @property
    def _raw(self) -> CaseResult:
        return self._bench.result(self._planned)

    @property
    def summary(self) -> Summary:
        """Every metric of the case, and the reason for each one that is missing."""
        return self._bench.session.summary_of(self.result)

    def metric(self, name: str) -> Quantity:
        """Return one metric by its registered name; fails the test if it was not measured.

        The signal to noise ratio of outputs without any difference is infinite.
        """
        quantity = self.found(name)
        if quantity is None:
            reason = self.summary.missing.get(name, "this case has no such metric")
            fail(self.name, [f"{name} was not measured: {reason}"])
            raise AssertionError  # failing raised already
        return quantity

    def found(self, name: str) -> Quantity | None:
        """Return one metric by its registered name, ``None`` if it was not measured."""
        self.need_for(name)
        return self.summary.quantities.get(name, self.summary.infinite.get(name))

    def numbers_of(self, names: Mapping[str, str]) -> dict[str, Quantity | None]:
        """Return metrics as far as they were measured; nothing is measured, and no test fails.

        Args:
            names: Registered names, by what the metrics are called here.
        """
        known = [self._bench.known(entry) for entry in self._entries]
        if len(known) != 1 or known[0] is None:
            return dict.fromkeys(names)
        quantities = self._bench.session.summary_of(known[0]).quantities
        return {shown: quantities.get(metric) for shown, metric in names.items()}

    def __repr__(self) -> str:
        """Return what it is of and, of one case, its status; nothing is measured for it."""
        names = [self._bench.name_of(entry) for entry in self._entries]
        known = [self._bench.known(entry) for entry in self._entries]
        states = ["not measured yet" if result is None else result.status for result in known]
        lines = [f"{name}: {state}" for name, state in zip(names, states, strict=True)]
        return "\n".join(lines) or "no case"

    def need_for(self, name: str) -> None:
        """Have the pass carried out that a metric comes from, unless it was."""
        for entry in registry.PASSES:
            # Where a call of the fixture asks for a pass, reading a number does not.
            if entry.is_asked_by_metrics and not entry.asked_by and name in entry.metric_names:
                self.need(entry.name)

    def latency(self) -> View:
        """``p50``, ``p90``, ``p95``, ``p99``, ``mean``, ``min`` of one inference, in seconds."""
        return self.view("latency", "p50", "p90", "p95", "p99", "mean", "min")

    def throughput(self) -> Quantity:
        """Items per second of all callers of the case together, one quantity."""
        return self.metric("throughput")

    def startup(self) -> View:
        """``session_create``, ``first_inference`` and ``warmup``, in seconds.

        ``session_create_disk``, ``session_create_cached`` and ``first_inference_shape`` come from a
        pass of its own, in further fresh processes.
        """
        names = ("session_create", "session_create_warm", "first_inference", "warmup")
        return self.with_passes("startup", names)

    def memory(self) -> View:
        """Resident size (``peak_rss``, …), ``device_memory`` and ``model_size``, in bytes.

        With ``--ort-soak`` also ``memory_growth`` per thousand inferences, and ``leaks``: 1 or 0.
        """
        names = ("peak_rss", "process_peak_rss", "session_rss", "device_memory", "model_size")
        return self.with_passes("memory", names)

    def placement(self) -> View:
        """``ratio`` of computing nodes and ``time`` share on the asked provider."""
        return View(self, {"ratio": "placement", "time": "time_on_provider"})

    def placement_facts(self) -> Placement | None:
        """What the profiled run saw."""
        return self.result.placement

    def accuracy(self) -> View:
        """``finite``, ``max_abs``, ``cosine``, ``sqnr`` (dB) and ``top1`` against the reference."""
        return self.view("accuracy", "finite", "max_abs", "cosine", "sqnr", "top1")

    def accuracy_facts(self) -> Accuracy | None:
        """Errors by output, and what they were compared with."""
        return self.result.accuracy

    def judgements(self) -> dict[str, Judgement]:
        """What could be judged of the case, and what could not, by what is judged.

        ``accuracy``, ``placement``, ``warm-up``, and ``task`` where labelled data was named. Each
        is good, bad or not judged (``is_good``, ``is_bad``, ``is_unjudged``), with its ``reason``;
        ``drawn_inputs`` says that it rests on these alone.
        """
        return {judgement.of: judgement for judgement in self.summary.judgements}

    def hold(self, limits: Sequence[Limit]) -> list[LimitOutcome]:
        """Hold the case to limits; passes that they need are carried out."""
        from pytest_ortbench.analysis.limits import check_limits
        from pytest_ortbench.core.metrics import PASS_OF_METRIC

        named = {limit.metric.name for limit in limits}
        for needed in sorted({PASS_OF_METRIC[name] for name in named if name in PASS_OF_METRIC}):
            self.need(needed)
        return check_limits(limits, self.summary)

    def finish(self, item: pytest.Item, at_end: AtEnd) -> None:
        """Measure the case if the test did not ask for anything, and check what holds for it.

        Args:
            item: The test.
            at_end: Judges the case at the end of a test.
        """
        self._fail(self.problems(item, at_end))

    def problems(self, item: pytest.Item, at_end: AtEnd) -> list[str]:
        """Check what holds for the case; return everything that is wrong.

        Limits of the test's markers, placement, and what the case is held to, unless another test
        carries that. A case that gave no number skips or fails the test at once.

        Args:
            item: The test.
            at_end: Judges the case at the end of a test.
        """
        _ = self.result
        self._check_faults()
        outcomes = self.hold(self._limits) if self._limits else []
        self._bench.marked_limits.held(item.nodeid)
        broken = [
            (outcome.limit.metric.name, outcome.judgement.reason)
            for outcome in outcomes
            if not outcome.judgement.is_good
        ]
        lines = ("limits exceeded", *(f"  {line}" for _, line in broken))
        misplaced = self._misplaced()
        complaints = self._bench.complaints
        complaints.note(item, self._planned, LIMIT, broken)
        complaints.note(item, self._planned, PLACEMENT, (("placement", text) for text in misplaced))
        problems = (["\n".join(lines)] if broken else []) + misplaced
        return problems + at_end(item, self._planned)

    def skipped(self, item: pytest.Item, at_end: AtEnd) -> None:
        """Judge the case of a test that was skipped: it can't run here, or can't be judged."""
        known = self._bench.known(self._planned)
        if known is None:
            return
        failed = known.failure is not None
        self._fail(at_end(item, self._planned) if failed else self._misplaced())

    def _fail(self, problems: Sequence[str]) -> None:
        fail(self.name, problems)

    def _check_faults(self) -> None:
        """Fail the test if what the user gave to a pass is wrong, whatever the test asked for."""
        for entry in registry.PASSES:
            fault = entry.load(entry.fault)(self.result) if entry.fault else ""
            if fault:
                fail(self.name, [f"{entry.name}: {fault}"])

    def _misplaced(self) -> list[str]:
        """With ``--ort-fallback=strict``: what is wrong if it ran less than all."""
        if self._bench.options.fallback != "strict":
            return []
        from pytest_ortbench.core.placement import judge_placement, nodes_elsewhere

        placement = self.result.placement
        count = 0 if placement is None else nodes_elsewhere(placement)
        if placement is not None and count:
            ops = ", ".join(f"{op} ({n})" for op, n in sorted(placement.ops_elsewhere.items()))
            return [
                f"{count} computing node{'s' * (count > 1)} did not run on "
                f"{' or '.join(placement.asked)}: {ops} (--ort-fallback=strict)"
            ]
        judgement = judge_placement(placement)
        if judgement.is_good:
            return []
        return [
            f"placement is {judgement.outcome.value}: {judgement.reason} (--ort-fallback=strict)"
        ]

    def need(self, name: str) -> None:
        """Have a pass carried out now if it was not yet."""
        if self.result.failure is None:
            self._bench.result(self._planned, name)

    def view(self, prefix: str, *names: str) -> View:
        """Return some metrics whose names start alike, by what follows."""
        return View(self, {name: f"{prefix}_{name}" for name in names})

    def with_passes(self, view: str, names: Sequence[str] = ()) -> View:
        """Return metrics of the standard pass, and those of passes that the view shows."""
        shown = [
            name for entry in registry.PASSES if entry.view == view for name in entry.metric_names
        ]
        return View(self, {name: name for name in (*names, *shown)})

    def _told_in(self, _failure: Failure) -> str:
        """Return the test that failed already for the same reason; each case has its own."""
        return ""

    def _raise(self, result: CaseResult) -> None:
        """Turn a failure into pytest's outcome (docs/start/first-run.md, What fails)."""
        from pytest_ortbench.report.escape import shown

        failure = result.failure
        assert failure is not None
        during = f" while {failure.doing}" if failure.doing else ""
        text = f"{self.name}: {result.status}{during}: {failure.message}"
        if failure.hint:
            text += f"\n{failure.hint}"
        if failure.kind == "unsupported":
            pytest.skip(shown(text))
        if failure.kind in ("unavailable", "fallback") and not self.case.provider.named:
            pytest.skip(shown(text))
        told_in = self._told_in(failure)
        if told_in:
            pytest.skip(shown(f"{text}\nSkipped, since {told_in} already failed for this reason"))
        if failure.log_tail:
            text += f"\nNative log:\n{failure.log_tail}"
        pytest.fail(shown(text), pytrace=False)


def fail(name: str, problems: Sequence[str]) -> None:
    """Fail the running test with what is wrong with its case, if anything is.

    Args:
        name: The case; empty where each problem says which.
        problems: What is wrong.
    """
    if problems:
        from pytest_ortbench.report.escape import shown

        lines = (f"{name}: {text}" if name else text for text in problems)
        pytest.fail(shown("\n".join(lines)), pytrace=False)
