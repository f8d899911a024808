"""Every option is one field here, in a class that is joined as a base, or in one of a pass.

To add one, add a field, and one of the same type to the plan's request or to
:class:`~pytest_ortbench.core.case.Sampling` if the plan takes its value (``to``). Nothing is
imported here that pytest itself has not imported: every start of pytest pays for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.option import Keyword, OptionRow, option, option_rows, switch
from pytest_ortbench.core.placing import placed
from pytest_ortbench.passes.registry import option_groups
from pytest_ortbench.plugin.case_options import CaseOptions

if TYPE_CHECKING:
    from pytest_ortbench.core.limits import CaseLimit


class RunOptions(CaseOptions):
    """What command line and ini file ask for, in SI units and with absolute paths.

    Attributes:
        given: What the user set, by field, as text.
        places: Where each of them was set, by field: ``--ort-dims``, ``ort_dims in pytest.ini``.
        typed: Those of them that were set on the command line.
    """

    time_s: float = option(
        5.0,
        flag="--ort-time",
        kind="float",
        metavar="SECONDS",
        help="timed seconds per case, over all its workers, without warm-up (default: 5)",
        reader="pytest_ortbench.core.option_text:read_seconds",
        rule="pytest_ortbench.plugin.option_readers:refuse_time_beyond_timeout",
        to="sampling.time_s",
    )
    #: As a share of the median: half the width of its interval.
    target: float = option(
        0.01,
        flag="--ort-target",
        kind="float",
        metavar="PCT",
        help="stop early when the median is known to this precision, in percent (default: 1)",
        reader="pytest_ortbench.core.option_text:read_percent",
        to="sampling.target",
    )
    workers: int = option(
        3,
        flag="--ort-workers",
        kind="int",
        metavar="N",
        help="fresh worker processes per case (default: 3)",
        reader="pytest_ortbench.plugin.option_readers:read_whole_number",
        to="sampling.workers",
    )
    #: Seconds from the first case to the end of the run; ``None`` sets no limit.
    budget_s: float | None = option(
        None,
        flag="--ort-budget",
        metavar="TIME",
        help="end the run after about this long, e.g. 10m: workers and seconds are divided over "
        "the cases, those with limits or a gate first; in place of --ort-time and "
        "--ort-workers",
        reader="pytest_ortbench.plugin.option_readers:read_budget",
        rule="pytest_ortbench.plugin.option_readers:refuse_budget_beside_shares",
    )
    yardstick: str = option(
        "auto",
        flag="--ort-yardstick",
        metavar="NAME",
        help="reference work whose blocks take turns with those of the model, which tells a slow "
        "minute of the machine from slow code: auto, off, serial, parallel, memory (default: auto)",
        reader="pytest_ortbench.plugin.option_readers:read_yardstick",
        to="sampling.yardstick",
    )
    fallback: str = option(
        "report",
        flag="--ort-fallback",
        metavar="HOW",
        help="computing nodes on another provider: report them, or with strict fail the test "
        "(default: report)",
        reader="pytest_ortbench.plugin.option_readers:read_fallback",
    )
    #: Starts where pytest was called.
    results: Path = option(
        Path("results"),
        flag="--ort-results",
        kind="path",
        metavar="DIR",
        help="folder of the run documents (default: results/ where pytest was called)",
        reader="pytest_ortbench.core.option_text:read_output_folder",
    )
    no_results: bool = switch(
        flag="--ort-no-results",
        help="write no run document and no plots",
    )
    memory_limit: int | None = option(
        None,
        flag="--ort-memory-limit",
        metavar="SIZE",
        help="memory that a worker may use before it is ended as out of memory, such as 8GB "
        "(default: nearly all that is free when it starts); Linux only",
        reader="pytest_ortbench.core.option_text:read_memory",
    )
    no_lock: bool = switch(
        flag="--ort-no-lock",
        help="measure without waiting for another run on this machine (flag OTHER-RUN)",
    )
    #: Seconds; ``None`` waits until the other run has ended.
    wait_s: float | None = option(
        None,
        flag="--ort-wait",
        metavar="TIME",
        help="wait at most this long for another run on this machine, as 10m, then end with exit "
        "code 75 (default: until the other run has ended)",
        reader="pytest_ortbench.plugin.option_readers:read_wait",
        rule="pytest_ortbench.plugin.option_readers:refuse_wait_without_lock",
    )
    json: Path | None = option(
        None,
        flag="--ort-json",
        kind="path",
        metavar="FILE",
        help="also write the run document to this file",
        reader="pytest_ortbench.core.option_text:read_output_file",
        writes="file",
    )
    html: Path | None = option(
        None,
        flag="--ort-html",
        kind="path",
        metavar="FILE",
        help="write an HTML report to this file",
        reader="pytest_ortbench.core.option_text:read_output_file",
        writes="file",
    )
    #: ``None`` for beside the run document.
    plots: Path | None = option(
        None,
        flag="--ort-plots",
        kind="path",
        metavar="DIR",
        help="folder of the plots (default: beside the run document)",
        reader="pytest_ortbench.core.option_text:read_output_folder",
        writes="folder",
    )
    prometheus: Path | None = option(
        None,
        flag="--ort-prometheus",
        kind="path",
        metavar="FILE",
        help="write metrics in the Prometheus text format to this file",
        reader="pytest_ortbench.core.option_text:read_output_file",
        rule="pytest_ortbench.plugin.missing_extras:refuse_without_prometheus",
        writes="file",
    )
    summary: Path | None = option(
        None,
        flag="--ort-summary",
        kind="path",
        metavar="FILE",
        help="write a summary in Markdown to this file, for a comment on a pull request: the "
        "verdict first, what changed, the rest folded",
        reader="pytest_ortbench.core.option_text:read_output_file",
        writes="file",
    )
    code_quality: Path | None = option(
        None,
        flag="--ort-code-quality",
        kind="path",
        metavar="FILE",
        help="write what is wrong as GitLab's code quality report to this file",
        reader="pytest_ortbench.core.option_text:read_output_file",
        writes="file",
    )
    metrics_report: Path | None = option(
        None,
        flag="--ort-metrics-report",
        kind="path",
        metavar="FILE",
        help="write the main numbers as GitLab's metrics report (OpenMetrics) to this file",
        reader="pytest_ortbench.core.option_text:read_output_file",
        writes="file",
    )
    #: Durations that are kept of a case; 0 keeps all.
    samples: int = option(
        3000,
        flag="--ort-samples",
        metavar="HOW",
        help="durations that are stored: thinned (at most 3,000 per case), or all (default: "
        "thinned)",
        reader="pytest_ortbench.plugin.option_readers:read_kept_samples",
        to="sampling.keep",
    )
    limits: tuple[CaseLimit, ...] = option(
        (),
        flag="--ort-limits",
        kind="lines",
        metavar="LIMITS",
        help="limits of every case, as in the marker: latency_p90:30ms, placement:>=95%, "
        "PATTERN@peak_rss:500MB",
        reader="pytest_ortbench.plugin.option_readers:read_case_limits",
        keyword=Keyword(
            help="limits, ['latency_p90 <= 30 ms']",
            takes="texts",
            may_be_empty=True,
            example="['latency_p90 <= 30 ms']",
        ),
    )
    against: str = option(
        "",
        flag="--ort-against",
        metavar="SIDE",
        help="compare with precision:P, model:PATH, runtime:REQ, provider:ALIAS, option:K=V or "
        "git:REV, measured in this run",
        reader="pytest_ortbench.plugin.option_readers:read_side",
    )
    baseline: str = option(
        "",
        flag="--ort-baseline",
        metavar="RUN",
        help="compare with a stored run: latest, a run's id, folder or file, a folder of runs",
        reader="pytest_ortbench.plugin.option_readers:read_baseline",
    )
    gate: tuple[str, ...] = option(
        (),
        flag="--ort-gate",
        kind="lines",
        metavar="LIMITS",
        help="limits on the comparison: latency:3%, peak_rss:2%+1MiB, placement:>=95%, "
        "PATTERN@latency:5%",
        reader="pytest_ortbench.plugin.option_readers:read_gate_limits",
        rule="pytest_ortbench.plugin.option_readers:refuse_idle_gate",
        keyword=Keyword(
            help="limits on a comparison, ['latency:5%'], beside --ort-gate",
            takes="texts",
            example="['latency:5%']",
        ),
    )
    gate_strict: bool = switch(
        flag="--ort-gate-strict",
        help="an inconclusive comparison fails",
        rule="pytest_ortbench.plugin.option_readers:refuse_idle_gate",
    )
    #: ``None`` for the file in pytest's root directory.
    accepted: Path | None = option(
        None,
        flag="--ort-accepted",
        kind="path",
        metavar="FILE",
        help="file of changes that the gate accepts, by case (default: ortbench-accepted.toml in "
        "pytest's root directory; 'ortbench accept' writes it)",
        reader="pytest_ortbench.core.option_text:read_one_path",
        rule="pytest_ortbench.plugin.option_readers:refuse_idle_gate",
    )
    gate_remeasure: bool = switch(
        flag="--ort-gate-remeasure",
        help="measure both sides of --ort-against even if they are identical, file and settings",
        rule="pytest_ortbench.plugin.option_readers:refuse_idle_gate",
    )
    resume: bool = switch(
        flag="--ort-resume",
        help="skip the cases that the last, interrupted run with the same options finished",
    )
    timeout_s: float = option(
        300.0,
        flag="--ort-timeout",
        kind="float",
        metavar="SECONDS",
        help="a case that takes longer than this many seconds ends as timeout (default: 300)",
        reader="pytest_ortbench.core.option_text:read_seconds",
        to="sampling.timeout_s",
    )
    collect: bool = switch(
        help="collect model files that are not named on the command line (default: false)",
    )
    given: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()

    def place_of(self, field: str) -> str:
        """Return where an option was set, for messages; its flag where nobody set it."""
        return self.places.get(field) or next(row.flag for row in ROWS if row.field == field)


# Classes that are joined become dataclasses with it, which takes a third of a start of the plugin.
#: Options of passes, a class each.
_OF_PASSES: tuple[type, ...] = option_groups()

if TYPE_CHECKING:

    class Options(RunOptions):
        """Options of the run and of all passes."""

        def __init__(self, **values: Any) -> None: ...

        def __getattr__(self, field: str) -> Any:
            """Return the value of an option of a pass."""

else:

    def __getattr__(name: str) -> Any:
        """Make the class of all options when it is asked for: only a run of ours needs it."""
        if name != "Options":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        for kind in (CaseOptions, RunOptions, *_OF_PASSES):
            dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)(kind)
        made = make_dataclass("Options", (), bases=(RunOptions, *_OF_PASSES), frozen=True)
        globals()["Options"] = made
        return made


#: Every option, in the order of the help.
ROWS: tuple[OptionRow, ...] = placed(
    option_rows(RunOptions),
    [(row.place, row) for kind in _OF_PASSES for row in option_rows(kind)],
    lambda row: row.field,
)
#: Rows that the ``ortbench`` marker takes, by keyword.
MARKER_KEYWORDS: dict[str, Keyword] = {
    row.field: row.keyword for row in ROWS if row.keyword is not None
}
