"""The table of options: flag, ini key, help, and whether its substance is there yet.

``pytest --help``, the ini keys and the messages are made from it. It holds no code, and imports
nothing that pytest itself has not imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["list", "lines", "int", "float", "str", "path", "flag"]

_INI_TYPES: dict[str, Literal["args", "linelist", "int", "float", "string", "bool"]] = {
    "list": "args",
    "lines": "linelist",
    "int": "int",
    "float": "float",
    "str": "string",
    "path": "string",
    "flag": "bool",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """One option.

    Attributes:
        field: Field of :class:`pytest_ortbench.options.Options` that holds its value.
        flag: As typed; empty for a key of the ini file only.
        kind: How it is written; ``list`` is repeatable and split at commas, and so is ``lines``,
            whose items may hold blanks.
        metavar: What stands behind ``=`` in the help.
        help: One line: meaning and default.
        filled_by: Parts of the product that give it its substance.
        pending: Why any value but the default is refused for now; empty once the option works.
    """

    field: str
    flag: str
    kind: Kind
    metavar: str
    help: str
    filled_by: tuple[str, ...] = ("main job",)
    pending: str = ""

    @property
    def ini(self) -> str:
        """Key in the ini file: ``ort_batch_sizes``."""
        return self.flag[2:].replace("-", "_") if self.flag else f"ort_{self.field}"

    @property
    def ini_type(self) -> Literal["args", "linelist", "int", "float", "string", "bool"]:
        """Type of the ini key, as pytest names it."""
        return _INI_TYPES[self.kind]


#: Keywords of the ``ortbench`` marker and what each takes; the help of the marker is made from it.
MARKER_KEYWORDS: dict[str, str] = {
    "models": "model specifications",
    "providers": "execution providers",
    "precisions": "precisions",
    "batch_sizes": "values of the batch axis",
    "dims": "values of symbolic dimensions, {'seq': [128, 512]}",
    "threads": "intra-op threads",
    "limits": "limits, ['latency_p90 <= 30 ms']",
    "gate": "limits on a comparison, ['latency:5%'], beside --ort-gate",
}

#: Every option, in the order of the help.
OPTIONS: tuple[OptionSpec, ...] = (
    OptionSpec(
        field="models",
        flag="--ort-models",
        kind="list",
        metavar="SPEC",
        help="models: files, globs, folders, zoo:NAME, builtin:NAME, zoo:all "
        "(default: the default set of the catalogue, and models/)",
    ),
    OptionSpec(
        field="providers",
        flag="--ort-providers",
        kind="list",
        metavar="SPEC",
        help="execution providers: all, or cpu, cuda:1, openvino:GPU, tensorrt … or full names "
        "(default: cpu)",
        filled_by=("main job", "providers"),
    ),
    OptionSpec(
        field="precisions",
        flag="--ort-precisions",
        kind="list",
        metavar="SPEC",
        help="precisions: native (the file as it is), fp32, fp16, bf16, int8-dynamic, "
        "int8-static, int4, simplified, optimized, or names of [tool.ortbench.precisions] and of "
        "own variants "
        "(default: native, and the model's own variants)",
        filled_by=("precisions",),
    ),
    OptionSpec(
        field="batch_sizes",
        flag="--ort-batch-sizes",
        kind="list",
        metavar="N,N",
        help="sizes of the batch axis: 1,8 (default: 1, or what the model fixes)",
    ),
    OptionSpec(
        field="dims",
        flag="--ort-dims",
        kind="list",
        metavar="NAME:V[:V]",
        help="sizes of symbolic dimensions; several make an axis: seq:128:512",
    ),
    OptionSpec(
        field="inputs",
        flag="--ort-inputs",
        kind="path",
        metavar="PATH",
        help="real inputs: .npz, folder of .npy, test_data_set_N (default: drawn from a seed)",
    ),
    OptionSpec(
        field="runtimes",
        flag="--ort-runtimes",
        kind="list",
        metavar="SPEC",
        help="where to measure: current, auto, requirements joined by + "
        "(onnxruntime==1.30.0+onnxruntime-qnn), or a configured name (default: current)",
        filled_by=("providers",),
    ),
    OptionSpec(
        field="threads",
        flag="--ort-threads",
        kind="list",
        metavar="N,N",
        help="intra-op threads (default: what the process may use)",
    ),
    OptionSpec(
        field="graph_opts",
        flag="--ort-graph-opt",
        kind="list",
        metavar="LEVEL",
        help="graph optimisation: disable, basic, extended, layout, all (default: all)",
        filled_by=("main job", "precisions"),
    ),
    OptionSpec(
        field="concurrency",
        flag="--ort-concurrency",
        kind="list",
        metavar="N,N",
        help="callers on each session at a time (default: 1)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="sessions",
        flag="--ort-sessions",
        kind="list",
        metavar="N,N",
        help="sessions in one process, each with its callers (default: 1)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="calls",
        flag="--ort-calls",
        kind="list",
        metavar="HOW",
        help="ways of calling: sync (run), async (run_async, with --ort-concurrency in flight) "
        "(default: sync)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="spinning",
        flag="--ort-spinning",
        kind="list",
        metavar="on,off",
        help="whether threads spin while they wait for work: quicker, for more CPU time "
        "(default: ONNX Runtime's, on)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="processes",
        flag="--ort-processes",
        kind="list",
        metavar="N,N",
        help="measure each case in so many processes at a time besides: rate and memory of all",
        filled_by=("load",),
    ),
    OptionSpec(
        field="io",
        flag="--ort-io",
        kind="list",
        metavar="MODE",
        help="where inputs and outputs live: end-to-end (host arrays), device "
        "(default: end-to-end)",
        filled_by=("providers",),
    ),
    OptionSpec(
        field="session_options",
        flag="--ort-session-option",
        kind="list",
        metavar="K=V",
        help="session option or config entry, which this ONNX Runtime must know; recorded",
    ),
    OptionSpec(
        field="provider_options",
        flag="--ort-provider-option",
        kind="list",
        metavar="ALIAS.K=V",
        help="provider option, which the provider must document; recorded",
        filled_by=("main job", "providers"),
    ),
    OptionSpec(
        field="custom_ops",
        flag="--ort-custom-ops",
        kind="list",
        metavar="LIB",
        help="library of custom operators",
        filled_by=("main job", "providers"),
    ),
    OptionSpec(
        field="time_s",
        flag="--ort-time",
        kind="float",
        metavar="SECONDS",
        help="timed seconds of a case, over all its workers, warm-up not counted (default: 5)",
    ),
    OptionSpec(
        field="target",
        flag="--ort-target",
        kind="float",
        metavar="PCT",
        help="stop early when the median is known this well, in percent (default: 1)",
    ),
    OptionSpec(
        field="workers",
        flag="--ort-workers",
        kind="int",
        metavar="N",
        help="fresh worker processes a case (default: 3)",
    ),
    OptionSpec(
        field="fallback",
        flag="--ort-fallback",
        kind="str",
        metavar="HOW",
        help="computing nodes on another provider: report them, or strict: the test fails "
        "(default: report)",
        filled_by=("providers",),
    ),
    OptionSpec(
        field="results",
        flag="--ort-results",
        kind="path",
        metavar="DIR",
        help="folder of the run documents (default: results/ where pytest was called)",
    ),
    OptionSpec(
        field="no_results",
        flag="--ort-no-results",
        kind="flag",
        metavar="",
        help="write no run document and no plots",
    ),
    OptionSpec(
        field="json",
        flag="--ort-json",
        kind="path",
        metavar="FILE",
        help="write the run document to this file too",
    ),
    OptionSpec(
        field="html",
        flag="--ort-html",
        kind="path",
        metavar="FILE",
        help="write an HTML report to this file",
        filled_by=("reports",),
    ),
    OptionSpec(
        field="plots",
        flag="--ort-plots",
        kind="path",
        metavar="DIR",
        help="folder of the plots (default: beside the run document)",
        filled_by=("main job", "reports"),
    ),
    OptionSpec(
        field="prometheus",
        flag="--ort-prometheus",
        kind="path",
        metavar="FILE",
        help="write metrics in the Prometheus text format to this file",
        filled_by=("reports",),
    ),
    OptionSpec(
        field="samples",
        flag="--ort-samples",
        kind="str",
        metavar="HOW",
        help="durations that are kept: thinned (at most 3,000 a case), or all (default: thinned)",
    ),
    OptionSpec(
        field="dataset",
        flag="--ort-dataset",
        kind="str",
        metavar="PATH",
        help="labelled data for the accuracy of a task: .npz with an array 'labels', or "
        "FILE.py:FUNCTION that gives batches and a metric (default: none)",
        filled_by=("precisions",),
    ),
    OptionSpec(
        field="soak_s",
        flag="--ort-soak",
        kind="float",
        metavar="MINUTES",
        help="run each case this long besides, and look for memory that grows for ever",
        filled_by=("load",),
    ),
    OptionSpec(
        field="startup",
        flag="--ort-startup",
        kind="flag",
        metavar="",
        help="start each case again in fresh processes, with the model's files in and out of the "
        "page cache and the provider's engines cached and not",
        filled_by=("load",),
    ),
    OptionSpec(
        field="stages",
        flag="--ort-stages",
        kind="list",
        metavar="[PATTERN@]FILE.py",
        help="time a frame with the preprocess and postprocess of this file around inference; "
        "several files each name their cases: detector*@stages/detector.py",
        filled_by=("load",),
    ),
    OptionSpec(
        field="soak_dims",
        flag="--ort-soak-dims",
        kind="list",
        metavar="NAME:A-B",
        help="sizes that vary within the soak: seq:1-300, or seq:16:64:300 (default: the case's)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="energy_window_s",
        flag="--ort-energy-window",
        kind="float",
        metavar="SECONDS",
        help="shortest window of energy; 60 for what a purchase is decided by (default: 5)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="load",
        flag="--ort-load",
        kind="list",
        metavar="SCENARIO[:K:V]",
        help="put each case under MLPerf's load generator besides: single-stream, multi-stream, "
        "server:RATE:LATENCY, offline, or peak:p99:20ms for the highest rate that is VALID",
        filled_by=("load",),
    ),
    OptionSpec(
        field="load_official",
        flag="--ort-load-official",
        kind="flag",
        metavar="",
        help="use the durations of MLPerf's rules for --ort-load (10 minutes and more a load)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="load_logs",
        flag="--ort-load-logs",
        kind="path",
        metavar="DIR",
        help="keep the load generator's own logs in this folder (default: none are kept)",
        filled_by=("load",),
    ),
    OptionSpec(
        field="profile",
        flag="--ort-profile",
        kind="flag",
        metavar="",
        help="profile each case by operator, in a run of its own",
        filled_by=("load",),
    ),
    OptionSpec(
        field="limits",
        flag="--ort-limits",
        kind="lines",
        metavar="LIMITS",
        help="limits of every case, as in the marker: latency_p90:30ms, placement:>=95%, "
        "PATTERN@peak_rss:500MB",
    ),
    OptionSpec(
        field="against",
        flag="--ort-against",
        kind="str",
        metavar="SIDE",
        help="compare with precision:P, model:PATH, runtime:REQ, provider:ALIAS, option:K=V or "
        "git:REV, measured in this run",
        filled_by=("gate",),
    ),
    OptionSpec(
        field="baseline",
        flag="--ort-baseline",
        kind="str",
        metavar="RUN",
        help="compare with a stored run: latest, a run's id, folder or file, a folder of runs",
        filled_by=("gate",),
    ),
    OptionSpec(
        field="gate",
        flag="--ort-gate",
        kind="lines",
        metavar="LIMITS",
        help="limits on the comparison: latency:3%, peak_rss:2%+1MiB, placement:>=95%, "
        "PATTERN@latency:5%",
        filled_by=("gate",),
    ),
    OptionSpec(
        field="gate_strict",
        flag="--ort-gate-strict",
        kind="flag",
        metavar="",
        help="an inconclusive comparison fails",
        filled_by=("gate",),
    ),
    OptionSpec(
        field="accepted",
        flag="--ort-accepted",
        kind="path",
        metavar="FILE",
        help="what the gate accepts, by case (default: ortbench-accepted.toml in pytest's root "
        "directory; 'ortbench accept' writes it)",
        filled_by=("gate",),
    ),
    OptionSpec(
        field="gate_remeasure",
        flag="--ort-gate-remeasure",
        kind="flag",
        metavar="",
        help="measure both sides of --ort-against even if they are identical, file and settings",
        filled_by=("gate",),
    ),
    OptionSpec(
        field="resume",
        flag="--ort-resume",
        kind="flag",
        metavar="",
        help="skip what the last, interrupted run of the same plan finished",
    ),
    OptionSpec(
        field="timeout_s",
        flag="--ort-timeout",
        kind="float",
        metavar="SECONDS",
        help="a case that takes longer ends as timeout (default: 300)",
    ),
    OptionSpec(
        field="collect",
        flag="",
        kind="flag",
        metavar="",
        help="collect model files that are not named on the command line (default: false)",
    ),
)
