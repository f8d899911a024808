"""Older run documents, brought up to date one version at a time.

A document carries its schema version. Every change of the core types that an old document would
not survive gets the next version and one function here, which turns the plain JSON of the version
before into that of the next. New fields with a default need neither.

Three top-level fields keep their name and meaning in every version, so that a listing of runs
need not migrate: ``schema_version``, ``run_id`` and ``started_at``; so does ``finished_at``.

Sentences of older versions that decided something stand here, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.run import SCHEMA_VERSION
from pytest_ortbench.schema.layout import Plain
from pytest_ortbench.schema.meaning import CHANGED

PlainObject: TypeAlias = "dict[str, Plain]"

#: One step: the plain document of version n in, that of version n + 1 out. It may change its
#: argument; ``schema_version`` is set by the caller.
Step: TypeAlias = Callable[[PlainObject], PlainObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrations:
    """The way from any older version to ``target``.

    Attributes:
        target: The version that is read and written.
        steps: The step that leaves each older version.
    """

    target: int
    steps: Mapping[int, Step]

    @property
    def oldest(self) -> int:
        """The oldest version that can be read."""
        return min((self.target, *self.steps))

    def check(self, version: Plain, place: str) -> int:
        """Return the document's version if it can be read.

        Raises:
            DocumentError: if it is no version number, too new or unknown.
        """
        if isinstance(version, bool) or not isinstance(version, int):
            raise DocumentError(
                f"schema_version is {version!r}, not a whole number",
                place=place,
                hint=CHANGED,
            )
        if version > self.target:
            raise DocumentError(
                f"the document has schema version {version}, but this pytest-ortbench reads "
                f"versions up to {self.target}",
                place=place,
                hint="Run: pip install --upgrade pytest-ortbench",
            )
        if version < self.oldest:
            raise DocumentError(
                f"the document has schema version {version}, but the first version is "
                f"{self.oldest}",
                place=place,
                hint="Name a run.json or journal.jsonl that ortbench wrote",
            )
        return version

    def apply(self, document: PlainObject, version: int) -> PlainObject:
        """Bring a plain document of ``version`` to ``target``."""
        for current in range(version, self.target):
            document = self.steps[current](document)
            document["schema_version"] = current + 1
        return document


#: The reason that version 1 gave for a pass that was stopped before it was over.
_INTERRUPTED_1 = "interrupted before it was over"
#: What one pass of a case found, and what several of them found.
_PASSES_1 = ("energy", "profile", "soak", "stages", "start_ups", "task")
_LISTS_OF_PASSES_1 = ("loads", "processes")
#: How version 1 told the size of a symbol: ``seq=128 (catalogue)``. Names may hold anything.
_SIZE_1 = re.compile(r"(?P<symbol>.+)=(?P<size>-?[0-9]{1,18}) \((?P<how>.*)\)\Z", re.DOTALL)
#: Where it came from, by what stood in the parentheses, or by what that began with.
_ORIGINS_1 = {
    "batch axis": "batch",
    "--ort-batch-sizes": "batch",
    "computed": "computed",
    "--ort-dims": "dims",
    "catalogue": "catalogue",
    "the model's default": "builder",
    "fixed by a consumer in the graph": "graph",
}
_BEGINNINGS_1 = {"default": "default", "in ": "file"}
#: How version 1 told why there is no verdict on a latency: the first that fits decides.
_CAUSES_1: tuple[tuple[str, str], ...] = (
    (r"only its absolute limits were held\Z", "limits"),
    (r"(input .*|io): .* → ", "inputs"),
    (r"status( of the (baseline|contender))?: ", "status"),
    (r"machine is shared \(", "shared"),
    (r"machine .*: .* → ", "machine"),
    (r"canary: ", "canary"),
    (r"(its time was over|not one launch fitted) ", "time"),
    (r"the regression does not stand among \d+ cases\Z", "suite"),
    (r"measured again with another seed, ", "unconfirmed"),
    (r"\d+ launches neither show nor exclude ", "launches"),
    (r"a margin of .* is below what this machine can resolve", "margin"),
    (r"the (floor|typical) time changed by ", "statistics"),
    (r"no median: ", "median"),
    (r"flagged |(THREADS>CPUS|THROTTLED|SPIN|STEAL|CPU-SHARE|UNSTEADY): ", "flags"),
    (r"the recorded noise of both runs ", "noise"),
    (r".*: .* → ", "workload"),
)
#: What version 1 called the baseline of a case that has none.
_NO_BASELINE_1 = "no baseline"
#: What a message of version 1 held if it told the phase of a failure itself.
_PHASES_1 = {
    "start": "starting the interpreter",
    "files": "copying files to the runtime",
    "digest": "checking its files",
    "import": "importing ONNX Runtime",
    "convert": "converting the model",
    "plug-ins": "loading plug-in providers",
    "inputs": "preparing inputs",
    "session": "creating the session",
    "first": "running the first inference",
    "warm-up": "warming up",
    "measure": "measuring",
    "memory": "reading memory",
    "profile": "profiling placement",
    "accuracy": "comparing outputs",
    "reference": "computing the reference",
    "task": "scoring labelled data",
    "energy": "measuring energy",
    "soak": "soaking",
    "load": "putting it under load",
    "stages": "running the stages",
    "close": "shutting down",
}


def had_baseline(baseline: str) -> bool:
    """Return whether a verdict of version 1 has another side, by the name of its baseline."""
    return baseline != _NO_BASELINE_1


def _from_1(document: PlainObject) -> PlainObject:
    """Turn the sentences of version 1 that decided something into fields."""
    for verdict in _objects(document.get("gate")):
        verdict["cause"] = _cause_from_1(verdict)
        verdict["has_baseline"] = verdict.get("baseline") != _NO_BASELINE_1
    for result in _objects(document.get("cases")):
        for case in _objects(result.get("case")):
            for spec in _objects(case.get("inputs")):
                resolved = spec.get("resolved")
                if isinstance(resolved, list):
                    spec["resolved"] = [_size_from_1(size) for size in resolved]
        for failure in _objects(result.get("failure")):
            _tell_1(failure)
        for name in (*_PASSES_1, *_LISTS_OF_PASSES_1):
            for outcome in _objects(result.get(name)):
                outcome["interrupted"] = outcome.get("reason") == _INTERRUPTED_1
    return document


def _cause_from_1(verdict: PlainObject) -> str:
    latency, reason = verdict.get("latency") or verdict.get("verdict"), verdict.get("reason")
    if verdict.get("removed") is True:
        return "removed"
    if latency not in ("inconclusive", "incomparable") or not isinstance(reason, str):
        return ""
    fitting = (cause for begins, cause in _CAUSES_1 if re.match(begins, reason, re.DOTALL))
    cause = next(fitting, "")
    # Sides that were measured in turns name what decides; a stored run differs in its workload.
    is_paired = verdict.get("decided_by") in ("floor", "typical")
    return "workload" if cause == "inputs" and not is_paired else cause


def _size_from_1(text: Plain) -> Plain:
    if not isinstance(text, str):
        return text
    match = _SIZE_1.match(text)
    if match is None:
        return {"symbol": "", "size": 0, "origin": "shape", "how": text}
    how = match["how"]
    origin = _ORIGINS_1.get(how) or next(
        (origin for start, origin in _BEGINNINGS_1.items() if how.startswith(start)), "sum"
    )
    return {"symbol": match["symbol"], "size": int(match["size"]), "origin": origin, "how": how}


def _tell_1(failure: PlainObject) -> None:
    """Note what the message of a failure says itself, so that nobody says it again."""
    message, phase, signal = (failure.get(name) for name in ("message", "phase", "signal"))
    if not isinstance(message, str):
        return
    if isinstance(phase, str):
        failure["tells_phase"] = _PHASES_1.get(phase, phase) in message
    if isinstance(signal, str):
        failure["tells_signal"] = bool(signal) and signal in message.rstrip(". \n")


def _from_2(document: PlainObject) -> PlainObject:
    """Take back what version 2 claimed of outputs with NaN, and of profiles that broke off."""
    for result in _objects(document.get("cases")):
        for accuracy in _objects(result.get("accuracy")):
            _claim_less_2(accuracy)
        for placement in _objects(result.get("placement")):
            if placement.get("cut_after") is not None:
                placement["seen"] = placement.get("executed", {})
                placement |= {"executed": {}, "shape_only": {}, "time_ns": {}}
                placement |= {"nodes_on_provider": None, "nodes_total": None}
    for verdict in _objects(document.get("gate")):
        for answers in _objects(verdict.get("answers")):
            for name in ("compared", "baseline_accuracy", "contender_accuracy"):
                for accuracy in _objects(answers.get(name)):
                    _claim_less_2(accuracy)
    return document


def _claim_less_2(accuracy: PlainObject) -> None:
    """Outputs with NaN or infinity were called finite and exact if both sides had the same."""
    for spread in _objects(accuracy.get("spread")):
        for trial in _objects(spread.get("trials")):
            _claim_less_2(trial)
    for output in _objects(accuracy.get("outputs")):
        if output.get("nonfinite") or output.get("reference_nonfinite"):
            output["finite"] = False
        if output.get("finite") is False:
            output["exact"] = False


def _from_3(document: PlainObject) -> PlainObject:
    """Give the comparison of an export with its source the names that it has now."""
    for result in _objects(document.get("cases")):
        if "fidelity" not in result:
            continue
        check = result["export_check"] = result.pop("fidelity")
        for facts in _objects(check):
            if "parting" in facts:
                facts["first_difference"] = facts.pop("parting")
    return document


def _objects(value: Plain) -> Iterator[PlainObject]:
    """The object that a plain value is, or the objects in it; what is neither is left as it is."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, dict):
            yield entry


MIGRATIONS = Migrations(target=SCHEMA_VERSION, steps={1: _from_1, 2: _from_2, 3: _from_3})
