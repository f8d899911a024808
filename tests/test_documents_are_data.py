"""Nothing that a run document says is started, loaded, opened or written, in whatever field."""

from __future__ import annotations

import ctypes
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.figure
import pytest

from pytest_ortbench.cli import application
from pytest_ortbench.cli.application import run
from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Runtime, Sampling
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.execution import execution as engine_module
from pytest_ortbench.execution.execution import Execution
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch import launcher as launcher_module
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.reference import reference_case
from pytest_ortbench.launch.steps import EndSteps
from pytest_ortbench.passes.profile.run import profile_case
from pytest_ortbench.passes.task.run.scoring import reference_scores
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.planned_again import PlannedAgain
from pytest_ortbench.schema.model_questions import CompareNodes, DescribeModel
from pytest_ortbench.schema.question import Question, answer_type
from pytest_ortbench.schema.wire import from_plain, to_plain
from tests.canaries import (
    CANARY,
    KEY,
    Place,
    answer_of,
    decoded,
    deeds,
    document_of,
    full_of_canaries,
    grown,
    planted_alone,
)
from tests.execution.test_passes import Listener
from tests.launch.cases import case_of, relu
from tests.results_factory import make_result, make_run

#: Imported before anything is heard.
DRAWS = matplotlib.figure


class Recorder:
    """Stands for a worker's process: keeps what would be started and sent, and fails."""

    seen: ClassVar[list[str]] = []

    def __init__(self, runtime: object, **others: object) -> None:
        del others
        self.seen.append(json.dumps(to_plain(runtime)))
        self.closed = False
        self.steps = EndSteps()

    def begin(self, question: object, deadline: float) -> None:
        del deadline
        self.seen.append(json.dumps(to_plain(question)))

    def finish(self, *_: object) -> object:
        raise WorkerError(Failure(kind="error", phase="start", message="nothing was started"))

    def read_log(self) -> str:
        return ""

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What workers would be started with and asked."""
    Recorder.seen = []
    monkeypatch.setattr(launcher_module, "WorkerProcess", Recorder)
    return Recorder.seen


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, where commands run."""
    folder = tmp_path / "project"
    folder.mkdir()
    relu(folder / "m.onnx")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def document(project: Path) -> dict[str, Any]:
    """A valid document of a run of that model."""
    return document_of(make_run([make_result(case=case_of(project / "m.onnx"))]))


def _in_case(places: list[Place]) -> list[Place]:
    """The places that are in what was asked for, where commands, libraries and paths stand."""
    return [place for place in places if place[:3] == ("cases", 0, "case")]


def test_the_places_are_those_of_the_types(document: dict[str, Any]) -> None:
    """Some of them named here, so that a walk that finds none does not pass for a proof."""
    made = grown(document)
    places = made.places
    assert decoded(made.document) is not None
    named = {".".join(str(part) for part in place[3:]) for place in _in_case(places)}
    assert named >= {
        "runtime.command.0", f"runtime.environment.{KEY}", "runtime.environment.key",
        "runtime.plugins.key", "runtime.requirements.0", "provider.library",
        "provider.options.key", "session.custom_ops.0", "session.entries.key", "stages",
        "dataset.path", "dataset.function", "sampling.load_logs", "inputs.0.path", "model.path",
        "model.reference.path", "model.external_files.0", "variant.path",
        "variant.external_files.0",
    }  # fmt: skip
    assert len(places) > 150


def _each(
    document: dict[str, Any], among: frozenset[str | int] = frozenset()
) -> Iterator[tuple[Place, CaseResult, dict[str, Any]]]:
    """Each place of a case with a canary in it and the rest valid; refused documents left out.

    Args:
        document: What is changed.
        among: Parts that a place must have one of; empty: any.
    """
    made = grown(document)
    for place in _in_case(made.places):
        if among and among.isdisjoint(place):
            continue
        # Alone, so that nothing else ends it earlier.
        changed = planted_alone(document, made, place)
        read = decoded(changed)
        if read is not None:
            yield place, read.cases[0], changed


def _profile_each(
    document: dict[str, Any], sent: list[str], among: frozenset[str | int] = frozenset()
) -> tuple[list[str], int]:
    """What profiles of stored cases did with canaries, and how many would have started any."""
    leaks: list[str] = []
    file = Path.cwd().parent / "theirs.json"
    tried = 0
    for place, result, changed in _each(document, among):
        file.write_text(json.dumps(changed))
        sent.clear()
        case_id = result.case.case_id
        with deeds() as found:
            run(["profile", case_id, f"--run={file}"])
            run(["profile", case_id, f"--run={file}", "--model=m.onnx", "--runtimes=current"])
        tried += bool(sent)
        leaks += [f"{place}: {each}" for each in (*found, *sent) if CANARY in each]
    return leaks, tried


@pytest.mark.live
def test_a_profile_of_a_stored_case_uses_none_of_it(
    document: dict[str, Any], sent: list[str]
) -> None:
    leaks, tried = _profile_each(document, sent)
    assert leaks == []
    # Not all are refused before anything would start.
    assert tried > 10


def test_a_leak_of_profile_would_be_seen(
    document: dict[str, Any], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pytest_ortbench.passes.profile.command.choose_case",
        lambda stored, *_: PlannedAgain(planned=Planned(case=stored)),
    )
    leaks, _ = _profile_each(document, sent, frozenset({"command", "custom_ops", "library"}))
    for place in ("'command', 0", "'custom_ops', 0", "'library'"):
        assert any(place in leak for leak in leaks)


def _resume_each(
    document: dict[str, Any], sent: list[str], among: frozenset[str | int] = frozenset()
) -> list[str]:
    """What passes on results of a journal would start and ask."""
    leaks: list[str] = []
    for place, stored, _ in _each(document, among):
        planned = Planned(case=case_of(Path("m.onnx").absolute()))
        listener, key = Listener(), planned.case.key
        sent.clear()
        with deeds() as found:
            launcher = ProcessLauncher()
            engine = Execution(
                launcher=launcher,
                variants=Variants(launcher=launcher, folder=Path("unused")),
                header=make_run(),
                listener=listener,
                finished={key: stored},
                passes={key: {"profile", "soak", "stages", "task", "load:offline"}},
            )
            result = engine.result(planned)
            engine.close()
            launcher.close()
        leaks += [f"{place}: {each}" for each in (*found, *sent) if CANARY in each]
        if engine.resumed and CANARY in repr(result.case.runtime):
            leaks.append(f"{place}: stands in the result")
    return leaks


@pytest.mark.live
def test_a_journal_gives_numbers_and_nothing_to_start(
    document: dict[str, Any], sent: list[str]
) -> None:
    assert _resume_each(document, sent) == []


def test_a_leak_of_a_resumed_run_would_be_seen(
    document: dict[str, Any], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "taken_over", lambda result, planned: result)  # noqa: ARG005
    monkeypatch.setattr(
        Execution,
        "_with_file",
        lambda engine, earlier, planned: earlier,  # noqa: ARG005
    )
    among = frozenset({"command", "custom_ops", "stages", "dataset"})
    leaks = "\n".join(_resume_each(document, sent, among))
    for place in ("'command', 0", "'custom_ops', 0", "'stages'", "'dataset', 'path'"):
        assert place in leaks


def _model_in(run: str) -> str:
    name: str = json.loads(Path(run).read_text())["cases"][0]["case"]["model"]["name"]
    return name


#: Every command that reads a run document.
READERS: dict[str, Callable[[str], list[str]]] = {
    "show": lambda run: ["show", run],
    "report": lambda run: ["report", run, "--output=out/page.html"],
    "report beside": lambda run: ["report", run],
    "compare": lambda run: ["compare", f"one={run}", "other.json", "--plots=out/plots"],
    "compare page": lambda run: ["compare", run, "other.json", "--format=html", "-oout/c.html"],
    "export": lambda run: ["export", run, "--format=json", "--output=out/rows.json"],
    "plot": lambda run: ["plot", run, "--format=svg"],
    "merge": lambda run: ["merge", run, "--output=out/merged.json"],
    "merge into results": lambda run: ["merge", run, "--any-host"],
    "trend": lambda run: ["trend", "results", "--plot=out/trend.svg"],  # noqa: ARG005
    "gate": lambda run: ["gate", "other.json", run],
    "badge": lambda run: ["badge", run, _model_in(run), "--output=out/badge.svg"],
    "schema": lambda run: ["schema", run],
    "accept": lambda run: ["accept", "*", "--reason=so", f"--run={run}", "--file=out/a.toml"],
    "watch": lambda run: ["watch", run, "--once"],
}


def test_every_command_that_reads_a_document_is_among_them() -> None:
    folder = Path(application.__file__).parent
    of_passes = (folder.parent / "passes").glob("*/command.py")
    reading = {
        file.parent.name if file.stem == "command" else file.stem
        for file in (*folder.glob("*.py"), *of_passes)
        if "load_run(" in (text := file.read_text(encoding="utf-8")) or "store.documents" in text
    }
    tried = {arguments("run.json")[0] for name, arguments in READERS.items() if name != "badge"}
    assert reading - {"arguments"} == tried | {"profile", "badge"}


@pytest.mark.live
@pytest.mark.parametrize("start", ["/", "../"])
def test_no_reader_does_anything_with_what_a_document_says(
    project: Path, document: dict[str, Any], sent: list[str], start: str
) -> None:
    (project / "out").mkdir()
    theirs = project / "results" / "theirs"
    theirs.mkdir(parents=True)
    (project / "other.json").write_text(json.dumps(document))
    full = full_of_canaries(document, start=start)
    (theirs / "run.json").write_text(json.dumps(full))
    codes: dict[str, int] = {}
    for name, arguments in READERS.items():
        with deeds() as found:
            codes[name] = run(arguments(str(theirs / "run.json")))
        assert found == [], name
    # Each got through the whole document; no metric has such a name, so nothing is accepted.
    assert {name for name, code in codes.items() if code != 0} == {"gate", "accept"}
    assert sent == []
    assert list(project.parent.rglob(CANARY)) == []


class Liar(Recorder):
    """Answers every question with paths of its own, as a worker of somebody else might."""

    def finish(self, question: Question[Any], deadline: float) -> Any:
        del deadline
        answer = answer_type(type(question))
        return None if answer is type(None) else from_plain(answer, answer_of(answer))


@pytest.mark.parametrize("shares_files", [True, False])
def test_no_path_in_an_answer_is_used_here(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares_files: bool
) -> None:
    monkeypatch.setattr(Recorder, "seen", [])
    monkeypatch.setattr(launcher_module, "WorkerProcess", Liar)
    runtime = Runtime(label="theirs", command=("theirs",), shares_files=shares_files)
    case = replace(
        case_of(project / "m.onnx"),
        runtime=runtime,
        sampling=Sampling(time_s=0.01, workers=1, timeout_s=0.3),
    )
    launcher = ProcessLauncher(log_folder=tmp_path / "logs")
    (tmp_path / "variants").mkdir()
    conversion = Conversion(
        recipe=Recipe(name="fp16", base="fp16"),
        source=case.model.path,
        digest=case.model.digest,
        size_bytes=case.model.size_bytes,
        own_precision="fp32",
        inputs=case.inputs,
    )
    variants = Variants(launcher=launcher, folder=tmp_path / "variants")
    asked: dict[str, Callable[[], object]] = {
        "inspect": lambda: launcher.inspect(runtime),
        "probe": lambda: launcher.probe(runtime, [case.provider]),
        "describe": lambda: launcher.ask(
            DescribeModel(path=str(project / "m.onnx")), deadline=time.monotonic() + 60
        ),
        "reference": lambda: launcher.reference(case, tmp_path / "scratch"),
        "scores": lambda: reference_scores(case, Dataset(path=case.model.path), launcher),
        "nodes": lambda: launcher.ask(
            CompareNodes(case=case, right=reference_case(case), samples=1),
            deadline=time.monotonic() + 60,
        ),
        "convert": lambda: variants.prepare(case, conversion),
        "measure": lambda: measure(case, launcher, tmp_path / "scratch"),
        "profile": lambda: profile_case(case, launcher, tmp_path / "trace.json"),
    }
    for name, ask in asked.items():
        with deeds() as found, suppress(WorkerError, OSError):
            ask()
        assert found == [], name
    launcher.close()
    questions = " ".join(Recorder.seen)
    assert all(word in questions for word in ("iterations", "budget_s", "reference"))


DEEDS: dict[str, Callable[[str], object]] = {
    "write": lambda path: Path(path).write_bytes(b""),
    "read": lambda path: Path(path).read_bytes(),
    "start": lambda path: subprocess.run([path], check=True),
    "load": ctypes.CDLL,
    "make a folder": lambda path: Path(path).mkdir(),
    "rename": lambda path: Path("there").rename(path),
    "execute": lambda path: exec(compile("", path, "exec"), {}),
}


@pytest.mark.live
@pytest.mark.parametrize("deed", sorted(DEEDS))
def test_a_deed_would_be_heard(deed: str) -> None:
    path = f"/{CANARY}/0/it"
    with deeds() as found, suppress(OSError):
        DEEDS[deed](path)
    assert found
