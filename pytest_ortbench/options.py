"""What the user asked for, read once from command line and ini file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.limits import CaseLimit
    from pytest_ortbench.core.task import Dataset
    from pytest_ortbench.planning.stage_files import StageFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What options and ini file ask for, in SI units and with absolute paths.

    Attributes:
        models: Model specifications, split; empty: the default set.
        providers: Provider specifications, split, devices checked.
        precisions: Names of precisions.
        batch_sizes: Values of the batch axis; empty if nobody asked for one.
        dims: Values of symbolic dimensions.
        inputs: Real inputs, ``None`` for drawn ones.
        runtimes: Runtime specifications, split.
        threads: Intra-op threads; empty: what the process may use.
        graph_opts: Graph optimisation levels; empty: ``all``.
        concurrency: Callers on each session at a time; empty: one.
        sessions: Sessions in one process; empty: one.
        calls: Ways of calling.
        spinning: Whether waiting threads spin; empty: ONNX Runtime's default.
        processes: Numbers of processes at a time, in a pass of its own.
        io: Where inputs and outputs live.
        session_options: Session options and config entries.
        provider_options: Provider options by alias.
        custom_ops: Custom operator libraries.
        time_s: Timed seconds of a case, over all its workers.
        target: Half-width of the median's interval to stop at, as a share of the median.
        workers: Fresh worker processes a case.
        fallback: ``report`` or ``strict``.
        results: Folder of the run documents.
        no_results: Write no run document.
        json: Where to write the run document once more.
        html: Where to write the report.
        plots: Folder of the figures; ``None``: beside the run document.
        prometheus: Where to write metrics for Prometheus.
        samples: ``thinned`` or ``all``.
        dataset: Labelled data or an entry point, ``None`` for none.
        soak_s: Length of the soak pass.
        soak_dims: Sizes that vary within the soak.
        energy_window_s: Shortest window of energy.
        startup: Measure start-up under known conditions.
        stages: Files of stages, each with the cases that it is for.
        load: Loads that each case is put under, as written.
        load_official: Use the durations of MLPerf's rules.
        load_logs: Folder for the load generator's logs; ``None`` keeps none.
        profile: Run the operator profile.
        limits: Limits of every case that they are for.
        against: Side to compare with in this run.
        baseline: Stored run to compare with.
        gate: Limits on the comparison.
        gate_strict: Whether an inconclusive comparison fails.
        accepted: File of what the gate accepts; ``None`` for that of pytest's root directory.
        gate_remeasure: Whether identical sides are measured, too.
        resume: Whether to go on with the last, interrupted run.
        timeout_s: Wall-clock limit of a case.
        collect: Whether model files are collected without being named.
        given: What the user set, by field, as text.
        places: Where each of them was set, by field: ``--ort-dims``, ``ort_dims in pytest.ini``.
    """

    models: tuple[str, ...] = ()
    providers: tuple[str, ...] = ("cpu",)
    precisions: tuple[str, ...] = ("native",)
    batch_sizes: tuple[int, ...] = ()
    dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: Path | None = None
    runtimes: tuple[str, ...] = ("current",)
    threads: tuple[int, ...] = ()
    graph_opts: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    sessions: tuple[int, ...] = ()
    calls: tuple[str, ...] = ("sync",)
    spinning: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()
    io: tuple[str, ...] = ("end-to-end",)
    session_options: dict[str, str] = field(default_factory=dict)
    provider_options: dict[str, dict[str, str]] = field(default_factory=dict)
    custom_ops: tuple[str, ...] = ()
    time_s: float = 5.0
    target: float = 0.01
    workers: int = 3
    fallback: str = "report"
    results: Path = Path("results")
    no_results: bool = False
    json: Path | None = None
    html: Path | None = None
    plots: Path | None = None
    prometheus: Path | None = None
    samples: str = "thinned"
    dataset: Dataset | None = None
    soak_s: float = 0.0
    soak_dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    energy_window_s: float = 5.0
    startup: bool = False
    stages: tuple[StageFile, ...] = ()
    load: tuple[str, ...] = ()
    load_official: bool = False
    load_logs: Path | None = None
    profile: bool = False
    limits: tuple[CaseLimit, ...] = ()
    against: str = ""
    baseline: str = ""
    gate: tuple[str, ...] = ()
    gate_strict: bool = False
    accepted: Path | None = None
    gate_remeasure: bool = False
    resume: bool = False
    timeout_s: float = 300.0
    collect: bool = False
    given: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


def read_options(config: pytest.Config) -> Options:
    """Return what command line and ini file ask for.

    Raises:
        pytest.UsageError: for a value that breaks a rule, and for an option that is not built yet.
    """
    import pytest

    from pytest_ortbench.core.errors import UsageError
    from pytest_ortbench.option_readers import parse_options

    try:
        return parse_options(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
