"""Measure every operator test of onnx, and record what came out; go on where a call stopped.

    python -m tests.operators.driver RECORDS [--how=given|drawn] [--part=K/N] [--write]

RECORDS is a folder that keeps one line a test; ``--write`` makes ``results/operators/`` of it, from
which docs/generate.py makes a page. About half an hour on two busy CPUs.

Planning, drawing, session, timed blocks, placement and diagnosis are the product's own; each model
is measured in a fork of one process, since two thousand workers would spend hours on imports.
``test_part.py`` runs sixty of them through pytest.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort  # before anything forks

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.session import Session
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.session import create, session_options
from tests.operators.backend import OperatorTest, operator_tests, plain, write_test
from tests.operators.in_process import InProcess

#: The inputs of the tests, or those that we draw.
GIVEN, DRAWN = "given", "drawn"
_SAMPLING = Sampling(time_s=0.02, workers=1, timeout_s=60.0)
#: Where ``--write`` puts what is recorded.
RESULTS = Path(__file__).parents[2] / "results" / "operators"

#: The folder in which models and inputs were written, as messages name it.
_TEMPORARY = re.compile(r"/\S*/ops-\w+/")

Record = dict[str, Any]


def records(
    tests: Sequence[OperatorTest], hows: Sequence[str], done: set[tuple[str, str]]
) -> Iterator[Record]:
    """Measure tests one after the other.

    Args:
        tests: The tests.
        hows: ``given``, ``drawn`` or both.
        done: What was recorded already: names, and which inputs.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ops-") as folder,
        Session(Path(folder), notify=lambda _: None, named_from=Path(folder)) as session,
    ):
        gc.collect()
        gc.freeze()  # a fork that collects garbage need not go through all the tests
        for test in tests:
            wanted = [how for how in hows if (test.name, how) not in done]
            if not wanted:
                continue
            model, inputs = write_test(test, Path(folder))
            runs = apart(lambda test=test: plain_session(test))
            if DRAWN in wanted and GIVEN in hows and not (runs and runs["runs"]):
                wanted.remove(DRAWN)  # what can't run with its own inputs tells nothing with others
            for how in wanted:
                record: Record = {"name": test.name, "operator": test.operator, "how": how}
                record["plain"] = runs or {"runs": False, "reason": "the process ended"}
                record |= measured(session, model, inputs if how == GIVEN and test.inputs else None)
                if how == GIVEN and record["status"] == "measured":
                    case = record["case"]
                    record["equal"] = apart(lambda case=case, test=test: fed_is_right(case, test))
                record.pop("case", None)
                yield record


def measured(session: Session, model: Path, inputs: Path | None) -> Record:
    """Plan and measure one model as any front end does, and say what became of it."""
    try:
        request = PlanRequest(models=(str(model),), inputs=inputs, sampling=_SAMPLING)
        plan = session.plan(request)
    except OrtbenchError as error:
        return {"status": "refused", "reason": str(error)}
    if not plan.entries:
        return {"status": "unreadable", "reason": "; ".join(map(str, plan.skips))[:300]}
    planned = plan.entries[0]
    if planned.refusal is not None:
        return {"status": planned.refusal.kind, "reason": planned.refusal.message}
    found = apart(lambda: _facts(measure(planned.case, InProcess(), model.parent)))
    crash = {"status": "crash", "reason": "the process ended", "flags": []}
    return {**(found or crash), "case": planned.case}


def _facts(result: CaseResult) -> Record:
    return {
        "status": result.status,
        "reason": "" if result.failure is None else result.failure.message,
        "flags": [flag.name for flag in result.flags if flag.name in _ABOUT_OUTPUTS],
    }


#: Flags that say something of the numbers that came out; others are about the machine.
_ABOUT_OUTPUTS = frozenset({"NONFINITE", "INACCURATE", "EMPTY", "NAN-INPUTS"})


def plain_session(test: OperatorTest) -> Record:
    """What a session does with the inputs of a test, and whether its outputs are right."""
    ort.set_default_logger_severity(4)
    try:
        session = ort.InferenceSession(
            test.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        names = [declared.name for declared in session.get_inputs()]
        outputs = session.run(None, dict(zip(names, test.inputs, strict=False)))
    except Exception as error:  # noqa: BLE001  # native errors have no common base class
        return {"runs": False, "reason": str(error)[:200]}
    return {"runs": True, "right": agree(outputs, test)}


def fed_is_right(case: Case, test: OperatorTest) -> bool:
    """Whether the inputs of a case give what the test expects."""
    options = session_options(case.session, threads=1)
    options.log_severity_level = 4
    session, _ = create(case.variant.path, case.provider, options)
    feeds = make_feeds(case.inputs, seed=case.seed)
    return agree(session.run(None, feeds), test)


def agree(found: Sequence[Any], test: OperatorTest) -> bool:
    """Whether outputs are what a test expects, within its tolerances."""
    return len(found) == len(test.outputs) and all(
        _same(one, other, test)
        for one, other in zip(plain(list(found)), plain(test.outputs), strict=True)
    )


def _same(found: Any, right: Any, test: OperatorTest) -> bool:
    if isinstance(right, list) or isinstance(found, list) or right is None or found is None:
        if not isinstance(right, list) or not isinstance(found, list):
            return right is None and found is None
        return len(found) == len(right) and all(
            _same(one, other, test) for one, other in zip(found, right, strict=True)
        )
    if found.shape != right.shape:
        return False
    if right.dtype.kind in "OUS" or found.dtype.kind in "OUS":
        return [str(text) for text in found.ravel()] == [str(text) for text in right.ravel()]
    wide = found.astype(np.float64), right.astype(np.float64)
    return bool(np.allclose(*wide, rtol=test.rtol, atol=test.atol, equal_nan=True))


def apart(ask: Any) -> Any:
    """Return what a function gives in a process of its own, ``None`` if that ends before."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(ask()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    return json.loads(answer) if answer else None


def read_records(folder: Path) -> list[Record]:
    """Return what was recorded, the newest of each test and kind of inputs."""
    found: dict[tuple[str, str], Record] = {}
    for file in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns):
        for line in file.read_text(encoding="utf-8").splitlines():
            with_newline = line.endswith("}")
            if with_newline:  # a torn last line is measured again
                record = json.loads(line)
                found[record["name"], record["how"]] = record
    return [found[key] for key in sorted(found)]


def table_of(records: Sequence[Record]) -> dict[str, Any]:
    """Count records by operator, and list what was not measured.

    An operator has six numbers: tests; those that a plain session runs with their inputs; of these
    the ones measured with the same inputs, the ones whose outputs are right wherever that session's
    are, and the ones measured with random inputs. At last those that a plain session can't be
    given, and that were measured and right.
    """
    by_test: dict[str, dict[str, Record]] = {}
    for record in records:
        by_test.setdefault(record["name"], {})[record["how"]] = record
    operators: dict[str, list[int]] = {}
    exceptions: list[dict[str, str]] = []
    for name, both in sorted(by_test.items()):
        given, drawn = both[GIVEN], both.get(DRAWN)
        counts = operators.setdefault(given["operator"], [0] * 6)
        counts[0] += 1
        if not given["plain"]["runs"]:
            counts[5] += given["status"] == "measured" and bool(given.get("equal"))
            continue
        counts[1] += 1
        counts[2] += given["status"] == "measured"
        counts[3] += bool(given.get("equal")) or not given["plain"]["right"]
        counts[4] += drawn is not None and drawn["status"] == "measured"
        exceptions += [
            {
                "name": name,
                "inputs": how,
                "status": record["status"],
                "reason": _TEMPORARY.sub("", record["reason"]),
            }
            for how, record in both.items()
            if record["status"] != "measured"
        ]
    versions = {"onnx": onnx.__version__, "onnxruntime": ort.__version__}
    return {"versions": versions, "operators": operators, "not_measured": exceptions}


def main(arguments: Sequence[str]) -> None:
    """Measure what is not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path)
    parser.add_argument("--how", choices=(GIVEN, DRAWN))
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure again what failed")
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args(arguments)
    chosen.records.mkdir(parents=True, exist_ok=True)
    part, parts = map(int, chosen.part.split("/"))
    tests = operator_tests()[part - 1 :: parts]
    tests = [test for test in tests if not chosen.names or test.name in chosen.names]
    known = read_records(chosen.records)
    if chosen.write:
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(table_of(known), indent=1, sort_keys=True)
        (RESULTS / "table.json").write_text(text + "\n", encoding="utf-8")
        return
    kept = [r for r in known if not chosen.again or r["status"] == "measured"]
    done = set() if chosen.names else {(record["name"], record["how"]) for record in kept}
    hows = [chosen.how] if chosen.how else [GIVEN, DRAWN]
    with (chosen.records / f"{part}-of-{parts}.jsonl").open("a", encoding="utf-8") as file:
        for record in records(tests, hows, done):
            file.write(json.dumps(record) + "\n")
            file.flush()
            if chosen.names:
                print(json.dumps(record))


if __name__ == "__main__":
    main(sys.argv[1:])
