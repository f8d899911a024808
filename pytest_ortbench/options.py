"""What the user asked for: options and ini keys, registered here and read once.

Nothing is imported here that pytest itself has not imported: this module is part of what every
project pays that merely has the plugin installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.option_registry import OPTIONS, OptionSpec

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What options and ini file ask for, in SI units and with absolute paths.

    Attributes:
        models: Model specifications, split; empty: the default set.
        providers: Provider specifications, split, devices checked.
        precisions: Names of precisions.
        batch_sizes: Values of the batch axis.
        dims: Values of symbolic dimensions.
        inputs: Real inputs, ``None`` for drawn ones.
        runtimes: Runtime specifications, split.
        threads: Intra-op threads; empty: what the process may use.
        graph_opts: Graph optimisation levels; empty: ``all``.
        concurrency: Callers on each session at a time; empty: one.
        sessions: Sessions in one process; empty: one.
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
        dataset: Labelled data or an entry point.
        soak_s: Length of the soak pass.
        load: Load scenario.
        load_official: Use the durations of MLPerf's rules.
        profile: Run the operator profile.
        against: Side to compare with in this run.
        baseline: Stored run to compare with.
        gate: Limits on the comparison.
        gate_strict: Whether an inconclusive comparison fails.
        resume: Whether to go on with the last, interrupted run.
        timeout_s: Wall-clock limit of a case.
        collect: Whether model files are collected without being named.
        given: What the user set, by field, as text.
        places: Where each of them was set, by field: ``--ort-dims``, ``ort_dims in pytest.ini``.
    """

    models: tuple[str, ...] = ()
    providers: tuple[str, ...] = ("cpu",)
    precisions: tuple[str, ...] = ("native",)
    batch_sizes: tuple[int, ...] = (1,)
    dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: Path | None = None
    runtimes: tuple[str, ...] = ("current",)
    threads: tuple[int, ...] = ()
    graph_opts: tuple[str, ...] = ()
    concurrency: tuple[int, ...] = ()
    sessions: tuple[int, ...] = ()
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
    dataset: str = ""
    soak_s: float = 0.0
    load: str = ""
    load_official: bool = False
    profile: bool = False
    against: str = ""
    baseline: str = ""
    gate: tuple[str, ...] = ()
    gate_strict: bool = False
    resume: bool = False
    timeout_s: float = 300.0
    collect: bool = False
    given: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


def add_options(parser: pytest.Parser) -> None:
    """Register every option and its ini key; for ``pytest_addoption``."""
    group = parser.getgroup(
        "ortbench",
        "ortbench: benchmark ONNX models (lists are repeatable and split at commas; every option "
        "is an ini key too, --ort-time is ort_time, and the command line replaces the ini value)",
    )
    for spec in OPTIONS:
        parser.addini(spec.ini, _ini_help(spec), type=spec.ini_type, default=None)
        if not spec.flag:
            continue
        # Texts and no types here: argparse would answer a wrong value with the usage of pytest
        # instead of the rule. read_options says what is wrong and where.
        text = spec.help.replace("%", "%%")
        if spec.kind == "flag":
            group.addoption(spec.flag, action="store_true", default=None, help=text)
        else:
            action = "append" if spec.kind == "list" else "store"
            group.addoption(spec.flag, action=action, default=None, metavar=spec.metavar, help=text)


def _ini_help(spec: OptionSpec) -> str:
    return f"{spec.help}; same as {spec.flag}" if spec.flag else spec.help


def is_asked_for(config: pytest.Config) -> bool:
    """Whether command line or ini file set any option of ours, rightly or wrongly."""
    if any(str(argument).startswith("--ort-") for argument in config.invocation_params.args):
        return True
    return any(_has_ini_value(config, spec.ini) for spec in OPTIONS)


def _has_ini_value(config: pytest.Config, key: str) -> bool:
    import pytest

    try:
        return config.getini(key) not in (None, [])
    except (TypeError, ValueError, pytest.UsageError):
        return True  # a value of the wrong type; read_options says so


def read_options(config: pytest.Config) -> Options:
    """Return what command line and ini file ask for.

    Raises:
        pytest.UsageError: for a value that breaks a rule, and for an option that is not built yet.
    """
    import pytest

    from pytest_ortbench.core.errors import UsageError

    # Here and not above: a project without items of ours never needs it.
    from pytest_ortbench.option_values import parse_options

    try:
        return parse_options(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
