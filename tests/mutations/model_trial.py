"""Take changed models through the product, and record what becomes of each.

    python -m tests.mutations.model_trial RECORD.jsonl [--count=2000] [--part=K/N] [--write]

Each model is inspected, planned, measured and converted in a fork of one process, as
``tests/operators/driver.py`` does it. What must not be is a *fault*: an exception that nobody
expects, an end of the process where the host would be, a wait without end, a reason that says
nothing, a text that moves a terminal's cursor. ``--write`` makes ``results/mutations/`` of records,
from which docs/generate.py makes a page. About ten minutes of a CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import importlib
import io
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort  # before anything forks

from pytest_ortbench.cli.application import run
from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import OrtbenchError, WorkerError
from pytest_ortbench.core.model import Variant
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.execution import refused, sound
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.reference import reference_case, reference_file
from pytest_ortbench.models import shape_inference
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.schema.document import decode_run, encode_run
from pytest_ortbench.schema.model_questions import Convert, MeasureSpread, WriteReference
from pytest_ortbench.session import Session
from tests.mutations.model_bases import model_bases
from tests.mutations.model_mutator import Mutant, mutant_of
from tests.operators.in_process import Here, InProcess
from tests.results_factory import make_run

Record = dict[str, Any]

#: Where ``--write`` puts what is recorded.
RESULTS = Path(__file__).parents[2] / "results" / "mutations"
#: Precisions that the models are converted to, in turns.
PRECISIONS = ("fp16", "int8-dynamic", "simplified", "optimized", "int4", "bf16")
_SAMPLING = Sampling(time_s=0.01, workers=1, timeout_s=30.0)
#: What one model may take, of wall time and of addresses.
_PATIENCE_S, _MOST_BYTES = 60.0, 6 << 30
#: In these phases the host does the work: a process that ends there would be pytest.
_OF_HOST = frozenset({"read", "inspect", "plan", "document"})
#: A reason that is the name and text of an exception of Python.
_OF_PYTHON = re.compile(
    r"(?:^|: |\()(?:Key|Attribute|Type|Index|Value|Assertion|Recursion|Unicode\w*|Overflow"
    r"|Runtime|ZeroDivision|NotImplemented|Lookup)Error\b|Traceback|object has no attribute"
)
#: What a tool of others says of a model that ONNX Runtime loads.
_OF_TOOL = re.compile(r"[\w-]+ can't be made( at node '[^']*')?: \w+: ")
#: What moves the cursor of a terminal, or turns the direction of a text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class _Launcher(InProcess):
    """Workers of this process that give references, too."""

    def reference(self, case: Case, folder: Path) -> Path:  # type: ignore[override]  # names them
        """Write reference outputs, as the host has it done."""
        case = reference_case(case)
        path = reference_file(case, folder)
        if not path.exists():
            Here(case, opens=False).ask(WriteReference(case=case, path=str(path)))
        return path

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> Any:
        """Say how far the reference differs from itself."""
        case, path = reference_case(case), str(reference)
        question = MeasureSpread(case=case, reference=path, magnitudes=magnitudes)
        return Here(case, opens=False).ask(question)


def records(seeds: Sequence[int]) -> Iterator[Record]:
    """Take models through the product one after the other."""
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        Session(Path(folder), notify=lambda _: None, named_from=Path(folder)) as session,
    ):
        _warm(session, Path(folder))
        gc.collect()
        gc.freeze()  # a fork that collects garbage need not go through all that was imported
        for seed in seeds:
            mutant = mutant_of(seed)
            place = Path(folder) / f"m{seed}"
            place.mkdir()
            for name, data in mutant.files.items():
                (place / name).write_bytes(data)
            began = time.monotonic()
            steps = _apart(lambda say, place=place, m=mutant: _taken(session, place, m, say))
            yield {
                "seed": seed,
                "base": mutant.base,
                "changes": list(mutant.changes),
                "wall_s": round(time.monotonic() - began, 2),
                **_told(steps),
            }


def _warm(session: Session, folder: Path) -> None:
    """Ask the runtime once, and import what all forks need."""
    for name in (
        "onnxslim",
        "onnxruntime.quantization",
        "onnxruntime.transformers.float16",
        "onnxruntime.quantization.matmul_nbits_quantizer",
        "onnxruntime.quantization.shape_inference",
    ):
        importlib.import_module(name)

    good = folder / "good.onnx"
    good.write_bytes(model_bases()["mlp"][0])
    session.plan(PlanRequest(models=(str(good),), sampling=_SAMPLING))


Say = Callable[[str, Any], None]


def _taken(session: Session, folder: Path, mutant: Mutant, say: Say) -> None:
    """Inspect, plan, measure and convert one model, saying what comes out of each."""
    shape_inference.subprocess = _Forks  # type: ignore[assignment]  # as far as it is used there
    path = folder / "model.onnx"
    say("phase", "inspect")
    code, printed = _printed(["models", "inspect", str(path)])
    say("inspected", code)
    if code not in (0, 2) or "Traceback" in printed:
        say("fault", f"inspect ended with {code}: {printed[-500:]}")
    if _CONTROL.search(printed):
        say("fault", f"inspect prints control characters: {printed[:300]!r}")
    for precision in ("native", PRECISIONS[mutant.seed % len(PRECISIONS)]):
        say("phase", "plan")
        try:
            plan = session.plan(
                PlanRequest(models=(str(path),), precisions=(precision,), sampling=_SAMPLING)
            )
        except OrtbenchError as error:
            say(precision, {"status": "refused", "reason": str(error)})
            continue
        if not plan.entries:
            say(precision, {"status": "left out", "reason": "; ".join(map(str, plan.skips))[:300]})
            continue
        for planned in plan.entries[:1]:
            result = _result(planned, folder, precision, say)
            say("phase", "document")
            _stored(result, say)
            say(precision, _facts(result))


def _result(planned: Planned, folder: Path, precision: str, say: Say) -> CaseResult:
    """Measure what was planned, as the engine does: converted before."""
    case = planned.case
    if planned.refusal is not None:
        return refused(case, planned.refusal)
    if planned.conversion is not None:
        say("phase", f"convert {precision}")
        made = folder / precision
        made.mkdir()
        try:
            question = Convert(conversion=planned.conversion, folder=str(made))
            converted = Here(case, opens=False).ask(question)
        except WorkerError as error:
            return refused(case, error.failure)
        case = _with_variant(case, converted, made)
    say("phase", f"measure {precision}")
    return measure(case, _Launcher(), folder)


def _with_variant(case: Case, converted: Any, made: Path) -> Case:
    from dataclasses import replace

    variant = Variant(
        precision=case.variant.precision,
        path=str(made / converted.file),
        digest=converted.digest,
        size_bytes=converted.size_bytes,
        external_files=converted.external_files,
    )
    return replace(case, variant=variant)


def _stored(result: CaseResult, say: Say) -> None:
    """A result makes a document that can be read."""
    held = sound(result)
    if held is not result and held.status == "error" and result.status != "error":
        say("fault", f"not sound: {held.failure and held.failure.message}")
    run_document = make_run([held])
    if decode_run(encode_run(run_document), "a document").cases != run_document.cases:
        say("fault", "the document gives another case back")


def _facts(result: CaseResult) -> Record:
    failure = result.failure
    return {
        "status": result.status,
        "phase": "" if failure is None else failure.phase,
        "reason": "" if failure is None else failure.message,
    }


def _printed(arguments: list[str]) -> tuple[int, str]:
    """Run a command of the console tool here, and return its exit code and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(arguments)
    return code, out.getvalue()


class _Forks:
    """Stands for :mod:`subprocess` where shapes are inferred: forks in place of programs."""

    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def run(arguments: Sequence[str], *, input: bytes, **_: Any) -> Any:
        """Infer the shapes of a model, as the program does."""

        def infer(say: Say) -> None:
            model = onnx.load_model_from_string(input)
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=arguments[-1] == "values")
            say("model", inferred.SerializeToString().hex())

        answer = dict(step for step in _apart(infer, patience_s=20.0) if step[0] == "model")
        output = bytes.fromhex(answer.get("model", ""))
        return subprocess.CompletedProcess(arguments, 0 if answer else 1, stdout=output)


def _apart(ask: Callable[[Say], None], patience_s: float = _PATIENCE_S) -> list[tuple[str, Any]]:
    """Return what a function says in a process of its own, and how that ends."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _alone(ask, writing)
    os.close(writing)
    steps: list[tuple[str, Any]] = []
    deadline = time.monotonic() + patience_s
    data, late = b"", False
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            late = True
            os.kill(pid, signal.SIGKILL)
            break
        piece = os.read(reading, 1 << 16)
        if not piece:
            break
        data += piece
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    steps += [tuple(json.loads(line)) for line in data.split(b"\n")[:-1]]
    if late:
        steps.append(("ended", "too late"))
    elif status:
        steps.append(("ended", f"by {os.waitstatus_to_exitcode(status)}"))
    return steps


def _alone(ask: Callable[[Say], None], writing: int) -> None:
    """Be the process that is asked; never returns."""
    code = 0
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()  # pytest's prints the end of a fork as if it were its own
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)

        def say(name: str, value: Any) -> None:
            os.write(writing, json.dumps([name, value]).encode() + b"\n")

        try:
            ask(say)
        except BaseException:  # noqa: BLE001 - whatever the product raises is what is looked for
            say("fault", traceback.format_exc()[-1500:])
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        code = 99
    finally:
        os._exit(code)


def _told(steps: Sequence[tuple[str, Any]]) -> Record:
    """From steps to outcomes by precision, and faults."""
    phase, outcomes, faults = "read", {}, []
    for name, value in steps:
        if name == "phase":
            phase = value
        elif name == "fault":
            faults.append(f"{phase}: {value}")
        elif name == "ended":
            kind = "timeout" if value == "too late" else "crash"
            outcomes[phase.rpartition(" ")[2]] = {"status": kind, "phase": phase, "reason": value}
            if phase in _OF_HOST:
                faults.append(f"the host ends in {phase}: {value}")
        elif name != "inspected":
            outcomes[name] = value
            faults += _bad_reason(value)
    return {"outcomes": outcomes, "faults": faults}


def _bad_reason(outcome: Record) -> list[str]:
    """What is wrong with the reason of an outcome."""
    reason = outcome["reason"]
    if outcome["status"] == "measured":
        return []
    if not reason.strip():
        return ["no reason"]
    if len(reason) > 1200 or "\n" in reason.strip():
        return [f"no line: {reason[:300]!r}"]
    if _OF_PYTHON.search(reason) and not _OF_TOOL.match(reason):
        return [f"an exception for a reason: {reason[:300]}"]
    return []


def table_of(found: Sequence[Record]) -> Record:
    """Count outcomes by base and form, and list the faults."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for record in found:
        for form, outcome in record["outcomes"].items():
            own = "as it is" if form == "native" else "converted"
            by_form = counts.setdefault(record["base"], {})
            by_form.setdefault(own, Counter())[outcome["status"]] += 1
    return {
        "versions": {"onnx": onnx.__version__, "onnxruntime": ort.__version__},
        "models": len(found),
        "outcomes": {base: {f: dict(sorted(c.items())) for f, c in forms.items()}
                     for base, forms in sorted(counts.items())},
        "faults": [{"seed": r["seed"], "faults": r["faults"]} for r in found if r["faults"]],
    }  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Take the models that are not recorded yet through the product."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--seeds", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    lines = chosen.record.read_text().splitlines() if chosen.record.exists() else []
    known = {record["seed"]: record for record in map(json.loads, lines)}
    if chosen.write:
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(table_of([known[seed] for seed in sorted(known)]), indent=1)
        (RESULTS / "table.json").write_text(text + "\n", encoding="utf-8")
        return
    part, parts = map(int, chosen.part.split("/"))
    seeds = chosen.seeds or [s for s in range(part - 1, chosen.count, parts) if s not in known]
    with chosen.record.open("a", encoding="utf-8") as file:
        for record in records(seeds):
            file.write(json.dumps(record) + "\n")
            file.flush()
            if record["faults"]:
                print(record["seed"], record["changes"], *record["faults"], sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
