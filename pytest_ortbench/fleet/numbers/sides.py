"""What is compared: the columns of a comparison, and which cases stand in the same row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ortbench.core.case import WORKLOAD_KNOBS
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts

#: What can be compared, and in one sentence what a column then is.
AXES: dict[str, str] = {
    "machine": "one column per machine; of several runs of a machine, the newest counts",
    "runtime": "one column per distribution and version of ONNX Runtime",
    "provider": "one column per execution provider, engine or framework",
    "precision": "one column per precision",
    "time": "one column per run, the oldest first",
}


#: Flags of the kernel by the name of an instruction set; any of them says that it is there.
_X86: dict[str, tuple[str, ...]] = {
    "AVX2": ("avx2",),
    "AVX-512": ("avx512f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "AVX-512 BF16": ("avx512_bf16",),
    "AVX-512 FP16": ("avx512_fp16",),
    "AMX": ("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
}
_ARM: dict[str, tuple[str, ...]] = {
    "dot products": ("asimddp",),
    "I8MM": ("i8mm",),
    "half precision": ("asimdhp",),
    "BF16": ("bf16",),
    "SVE": ("sve",),
    "SME": ("sme",),
}
_SETS = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One column.

    Attributes:
        label: What it is called.
        short: Likewise, without what it is if it is no execution provider.
        about: What is behind it: the machine, the runtime, when it was measured.
        runs: Runs that it takes cases from.
    """

    label: str
    short: str
    about: tuple[str, ...] = ()
    runs: tuple[RunFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A case, its column, and the row that it shares with the same case of other columns."""

    case: CaseFacts
    run: RunFacts
    side: str
    row: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All cases placed.

    Attributes:
        axis: A key of :data:`AXES`.
        sides: Columns in order; the first is the baseline unless the caller says otherwise.
        placed: Cases, at most one for a side and row.
        labels: What each row is called within its model.
        replaced: How many older measurements of the same side and row were left out.
        runtimes: What each machine runs, where each has one runtime and they differ: rows pair
            across them. Empty otherwise.
    """

    axis: str
    sides: tuple[Side, ...]
    placed: tuple[Placed, ...]
    labels: dict[tuple[object, ...], str]
    replaced: int = 0
    runtimes: dict[str, str] = field(default_factory=dict)


def choose_axis(runs: Sequence[RunFacts]) -> str:
    """Return what differs between runs: their machines, else their runtimes, else their times."""
    if len(set(machine_names(runs))) > 1:
        return "machine"
    kinds = [tuple(run.runtimes.values()) for run in runs]
    if len(set(kinds)) > 1 and all(len(kind) == 1 for kind in kinds):
        return "runtime"
    if len(runs) > 1:
        return "time"
    cases = [case for run in runs for case in run.cases]
    varied = {
        "runtime": len({case.runtime for case in cases}),
        "provider": len({case.provider for case in cases}),
        "precision": len({case.precision for case in cases}),
    }
    for axis, count in varied.items():
        if count > 1:
            return axis
    return "time"


def machine_names(runs: Sequence[RunFacts]) -> list[str]:
    """Name the machine of each run: its host, numbered where one host has different facts.

    A host that changed its processor or memory is another machine under the same name.
    """
    seen: dict[str, list[dict[str, str]]] = {}
    names: list[str] = []
    for run in runs:
        kinds = seen.setdefault(run.host, [])
        if run.machine not in kinds:
            kinds.append(run.machine)
        number = kinds.index(run.machine) + 1
        names.append(run.host if number == 1 else f"{run.host} ({number})")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """An instruction set that not all machines of its architecture have.

    Attributes:
        name: What it is called: ``VNNI``.
        on: Machines that have it.
        off: Machines that lack it.
    """

    name: str
    on: tuple[str, ...]
    off: tuple[str, ...]


def differing_sets(machines: Mapping[str, Mapping[str, str]]) -> tuple[Differing, ...]:
    """Return the instruction sets that machines differ in.

    A machine whose facts tell no flags, or no known architecture, is neither with nor without.

    Args:
        machines: Stable facts by the name of the machine.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for machine, facts in machines.items():
        flags = frozenset(facts.get("cpu_flags", "").split())
        known = _SETS.get(facts.get("architecture", ""), {}) if flags else {}
        for name, alternatives in known.items():
            on, off = found.setdefault(name, ([], []))
            (off if flags.isdisjoint(alternatives) else on).append(machine)
    return tuple(
        Differing(name=name, on=tuple(on), off=tuple(off))
        for name, (on, off) in found.items()
        if on and off
    )


def lay_out_sides(runs: Sequence[RunFacts], axis: str) -> Layout:
    """Place every case of every run in its column and row.

    Args:
        runs: At least one.
        axis: A key of :data:`AXES`.

    Raises:
        UsageError: if there is no such axis.
    """
    if axis not in AXES:
        raise UsageError(
            f"runs can't be compared by {axis!r}",
            place="--by",
            hint=did_you_mean(axis, AXES),
        )
    machines = dict(zip((run.run_id for run in runs), machine_names(runs), strict=True))
    names = _time_names(runs)
    ordered = sorted(runs, key=lambda run: (run.started_at, run.run_id))

    def side_of(run: RunFacts, case: CaseFacts) -> str:
        if axis == "machine":
            return machines[run.run_id]
        if axis == "runtime":
            return _runtime_side(run, case.runtime)
        if axis == "time":
            return names[run.run_id]
        return case.provider + case.role_note if axis == "provider" else case.precision

    several = len(set(machines.values())) > 1
    paired = _paired_runtimes(runs, machines) if axis == "machine" else {}
    placed_cases: dict[tuple[str, tuple[object, ...]], Placed] = {}
    count = 0
    for run in ordered:
        for case in run.cases:
            side, row = side_of(run, case), _row(case, axis, paired.get(case.runtime))
            if axis != "machine" and several:
                row = (*row, machines[run.run_id])
            count += 1
            # Later runs come later and take the place of earlier ones.
            placed_cases[side, row] = Placed(case=case, run=run, side=side, row=row)
    placed = _in_order_of_runs(placed_cases.values(), runs, axis)
    runtimes = {paired.get(case.runtime, case.runtime) for run in runs for case in run.cases}
    behind = {machines[run.run_id]: ", ".join(_names_of_runtimes(run)) for run in runs}
    return Layout(
        axis=axis,
        sides=_sides(placed, axis),
        placed=placed,
        labels={
            placed_case.row: _label(
                placed_case,
                axis,
                runtime=(
                    paired.get(placed_case.case.runtime, placed_case.case.runtime)
                    if len(runtimes) > 1
                    else ""
                ),
                machine=machines[placed_case.run.run_id] if axis != "machine" and several else "",
            )
            for placed_case in placed
        },
        replaced=count - len(placed),
        runtimes=(behind if set(paired.values()) == {""} and len(set(behind.values())) > 1 else {}),
    )


def _names_of_runtimes(run: RunFacts) -> list[str]:
    """What the runtimes of a run's cases are, each once."""
    return list(dict.fromkeys(run.runtimes.get(case.runtime, case.runtime) for case in run.cases))


def _paired_runtimes(runs: Sequence[RunFacts], machines: Mapping[str, str]) -> dict[str, str]:
    """Return by which name rows of different machines pair, by the label of their runtime.

    A machine with one runtime is compared with all that is on it, so its cases pair with those of
    another machine, whatever their runtimes are and are called. Where a machine has several, each
    goes by what it is, unless two of one run are the same.
    """
    of_machine: dict[str, set[str]] = {}
    for run in runs:
        of_machine.setdefault(machines[run.run_id], set()).update(_names_of_runtimes(run))
    labels = {case.runtime for run in runs for case in run.cases}
    if all(len(names) <= 1 for names in of_machine.values()):
        return dict.fromkeys(labels, "")
    names = {
        label: run.runtimes.get(label, label)
        for run in runs
        for label in labels
        if label in run.runtimes
    }
    for run in runs:
        own = [run.runtimes.get(label, label) for label in {case.runtime for case in run.cases}]
        if len(set(own)) < len(own) or any(
            names.get(label, label) != text for label, text in run.runtimes.items()
        ):
            return {}
    return names


def _in_order_of_runs(
    placed_cases: Iterable[Placed], runs: Sequence[RunFacts], axis: str
) -> tuple[Placed, ...]:
    """As the user named the runs, so that the first is the baseline; by age where time counts."""
    if axis == "time":
        return tuple(placed_cases)
    order = {run.run_id: index for index, run in enumerate(runs)}
    position = {
        (run.run_id, case.case_id, case.runtime): index
        for run in runs
        for index, case in enumerate(run.cases)
    }
    return tuple(
        sorted(
            placed_cases,
            key=lambda placed_case: (
                order[placed_case.run.run_id],
                position[
                    placed_case.run.run_id, placed_case.case.case_id, placed_case.case.runtime
                ],
            ),
        )
    )


def _runtime_side(run: RunFacts, label: str) -> str:
    name = run.runtimes.get(label, label)
    same = [other for other, text in run.runtimes.items() if text == name]
    return name if len(same) < 2 else f"{name} ({label})"


def _time_names(runs: Sequence[RunFacts]) -> dict[str, str]:
    """Name runs by when they started: to the minute, the second, else by their id."""
    for length in (16, 19):
        names = {run.run_id: run.started_at[:length].replace("T", " ") for run in runs}
        if len(set(names.values())) == len(runs) and all(names.values()):
            return names
    return {run.run_id: run.run_id for run in runs}


def _row(case: CaseFacts, axis: str, runtime: str | None) -> tuple[object, ...]:
    """All of a case that is not the axis; its runtime by the name that rows pair by, if any."""
    parts: dict[str, object] = {
        "model": case.model,
        "precision": case.precision,
        "provider": case.provider,
        "batch": case.batch,
        "dims": case.dims,
        "knobs": case.knobs,
        "io": case.io,
        "runtime": case.runtime if runtime is None else runtime,
    }
    parts.pop(axis, None)
    return tuple(parts.values())


def _label(placed_case: Placed, axis: str, *, runtime: str, machine: str) -> str:
    case = placed_case.case
    parts = {"precision": case.precision, "provider": case.provider}
    parts.pop(axis, None)
    text = "/".join([*parts.values(), *workload_parts(case), *_method_parts(case)])
    if runtime and axis != "runtime":
        text += f"+{runtime}"
    if axis != "provider":
        text += case.role_note
    return f"{text} on {machine}" if machine else text


def workload_parts(case: CaseFacts, *, without: Collection[str] = ()) -> list[str]:
    """Name what is fed: ``b8``, ``seq:128``, ``concurrency:4``.

    Args:
        case: The case.
        without: Knobs that are not named.
    """
    knobs = [(name, value) for name, value in case.knobs if name not in without]
    parts = [f"b{case.batch}", *(f"{name}:{size}" for name, size in case.dims)]
    parts += [f"{name}:{value}" for name, value in knobs if name in WORKLOAD_KNOBS]
    return parts if case.io == "end-to-end" else [*parts, f"io:{case.io}"]


def _method_parts(case: CaseFacts) -> list[str]:
    elsewhere = (*WORKLOAD_KNOBS, "io")
    return [f"{name}:{value}" for name, value in case.knobs if name not in elsewhere]


def _sides(placed: Sequence[Placed], axis: str) -> tuple[Side, ...]:
    members: dict[str, list[RunFacts]] = {}
    short: dict[str, str] = {}
    for placed_case in placed:
        case = placed_case.case
        short[placed_case.side] = case.provider if axis == "provider" else placed_case.side
        runs = members.setdefault(placed_case.side, [])
        if placed_case.run not in runs:
            runs.append(placed_case.run)
    about: Callable[[RunFacts], tuple[str, ...]] = {
        "machine": _about_machine,
        "time": _about_run,
        "runtime": lambda run: (run.host,),
    }.get(axis, lambda _: ())
    return tuple(
        Side(
            label=label,
            short=short[label],
            about=tuple(dict.fromkeys(text for run in runs for text in about(run))),
            runs=tuple(runs),
        )
        for label, runs in members.items()
    )


def _about_machine(run: RunFacts) -> tuple[str, ...]:
    return (*hardware_parts(run), *dict.fromkeys(run.runtimes.values()))


def hardware_parts(run: RunFacts) -> tuple[str, ...]:
    """Name the devices of a machine, its CPU, how many CPUs there are, and its memory."""
    facts = run.machine
    # The CPU's name is the first of the facts.
    parts = [next(iter(facts.values()), "")]
    counts = [facts[key] for key in ("cpus_usable", "cpus") if key in facts][:1]
    parts += [f"{count} CPU{'' if count == '1' else 's'}" for count in counts]
    parts += [facts[key] for key in ("memory",) if key in facts]
    return (*run.devices, *filter(None, parts))


def _about_run(run: RunFacts) -> tuple[str, ...]:
    commit = [f"commit {run.commit}"] if run.commit else []
    return (run.host, *dict.fromkeys(run.runtimes.values()), *commit)
