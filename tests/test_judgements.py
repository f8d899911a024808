"""Every function that judges says "not judged" to nothing, and never "good" to NaN or cut evidence.

Functions are found by what they are annotated to return: a ``Judgement``, several of them, or a
dataclass with a field that is one. Each is called with evidence that is missing, not a number, and
cut short, built from the annotations of its parameters. A new judge whose parameters nobody builds
here fails the test: give its types an entry in :data:`EVIDENCE`.
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import importlib
import importlib.util
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_ortbench.analysis.judgements import judgements_of
from pytest_ortbench.analysis.limits import LimitOutcome, check_limits
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.gate import ContrastVerdict, GateResult
from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.limits import Limit, parse_limit
from pytest_ortbench.core.outcome import (
    Accuracy,
    Answers,
    CaseResult,
    OutputAccuracy,
    OutputCheck,
    Placement,
)
from pytest_ortbench.core.precision import floor_of
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.passes.generation.facts import TextScore
from pytest_ortbench.passes.task.facts import TaskAccuracy
from tests.parsed import nodes_of, product
from tests.results_factory import make_case, make_measurement, make_result

#: What a judge may be given: evidence that is missing, not a number, cut short.
KINDS = ("nothing", "nan", "cut")

_CPU = "CPUExecutionProvider"

#: Modules that hold the type and its constructors.
_OF_THE_TYPE = ("pytest_ortbench.core.judgement",)

#: Functions that hand out a judgement that another one made, and why they are not fed here.
HANDED_ON = {
    "pytest_ortbench.plugin.judging.AskedLimits.judge": "hands on what its limits come to",
    "pytest_ortbench.plugin.judging.AskedLimits.settle": "likewise",
    "pytest_ortbench.plugin.judging.AskedLimits._unable": "has no evidence",
    "pytest_ortbench.plugin.judging.AskedLimits._verdict": "hands on what its limits come to",
    "pytest_ortbench.plugin.judging.ExpectedOutputs.judge": "hands on what judge_accuracy says",
    "pytest_ortbench.plugin.judging.ExpectedOutputs.settle": "likewise",
    "pytest_ortbench.plugin.judging.ExpectedOutputs._verdict": "likewise",
    "pytest_ortbench.plugin.gating.Gating.judge": "hands on what the sides come to",
    "pytest_ortbench.plugin.gating.Gating.settle": "likewise",
    "pytest_ortbench.plugin.gating.Gating._judge_unable": "likewise",
    "pytest_ortbench.plugin.gating.Gating._verdict": "likewise",
    "pytest_ortbench.plugin.gating.Gating._without_time": "had no time, so that it has no evidence",
    "pytest_ortbench.plugin.judging.Judge.judge": "declares what the two above do",
    "pytest_ortbench.plugin.judging.Judge.settle": "likewise",
    "pytest_ortbench.plugin.judging.Judging._settled_of": "looks up what a judge said",
    "pytest_ortbench.plugin.measured.Measured.hold": "checks its case against limits",
    "pytest_ortbench.passes.export_check.fixture.export_judgement": "what judge_export says",
    "pytest_ortbench.plugin.measured.Measured.judgements": "those in the summary of its case",
}


# -- evidence ---------------------------------------------------------------------------------


def _cut_task() -> TaskAccuracy:
    """Scores of four samples: they prove nothing."""
    return TaskAccuracy(
        dataset="d.npz",
        metric="top-1",
        samples=4,
        score_sum=4.0,
        largest=1.0,
        reference="fp32",
        reference_sum=4.0,
        difference_squares=0.0,
    )


def _result(accuracy: Accuracy, checks: int, task: TaskAccuracy) -> CaseResult:
    """A case with two timed inferences after a warm-up that was cut off, and no placement."""
    measurement = make_measurement(
        [3_000_000, 3_000_001],
        output_checks=[OutputCheck(run="first", nonfinite=checks, constant=False, digest="d")],
    )
    cold = replace(measurement.warm_up, steady=False, rule="3.3 s used after 3 runs")
    return CaseResult(
        case=make_case(),
        status="measured",
        measurements=(replace(measurement, warm_up=cold),),
        accuracy=accuracy,
        task=task,
    )


def _nan_result() -> CaseResult:
    output = OutputAccuracy(name="y", kind="float", finite=True, sqnr_db=math.nan, exact=True)
    nan = replace(_cut_task(), score_sum=math.nan)
    return _result(Accuracy(samples=8, outputs=(output,)), 1, nan)


def _cut_result() -> CaseResult:
    output = OutputAccuracy(name="y", kind="float", finite=True, exact=True, compared=0)
    return _result(Accuracy(samples=8, outputs=(output,)), 0, _cut_task())


def _summary_with(p50: Quantity | None) -> Summary:
    """A measured case whose median is another number, or was taken of too few samples."""
    summary = summarise(make_result())
    rest = {name: each for name, each in summary.quantities.items() if name != "latency_p50"}
    if p50 is None:
        return replace(summary, quantities=rest, missing={"latency_p50": "n<6"})
    return replace(summary, quantities={**rest, "latency_p50": p50})


def _outcome(summary: Summary) -> LimitOutcome:
    (outcome,) = check_limits([parse_limit("latency_p50 <= 1 s", place="")], summary)
    return outcome


def _gate(verdict: str, *, effect: float = 0.0) -> GateResult:
    contrast = ContrastVerdict(
        statistic="floor",
        verdict=verdict,
        effect=effect,
        low=None,
        high=None,
        margin=0.03,
        p=1.0,
        launches=8,
    )
    return GateResult(
        case_id="m/native/cpu/b1",
        runtime="current",
        baseline="model:old.onnx",
        verdict=verdict,
        contrasts=(contrast,),
    )


def _answers(**figures: Any) -> Answers:
    output = OutputAccuracy(name="y", kind="float", finite=True, exact=True, **figures)
    return Answers(
        floor=floor_of(make_case()),
        compared=Accuracy(samples=8, outputs=(output,)),
        task=_cut_task(),
    )


def _cut_text() -> TextScore:
    """Three windows, which are too few."""
    return TextScore(
        tokens=(255,) * 3, nats=(300.0,) * 3, reference_nats=(300.0,) * 3, vocabulary=1000
    )


#: Evidence by type: a builder for each kind. Types that can't hold NaN have none for it.
EVIDENCE: dict[object, Mapping[str, Callable[[], object]]] = {
    CaseResult: {
        "nothing": lambda: CaseResult(case=make_case(), status="measured"),
        "nan": _nan_result,
        "cut": _cut_result,
    },
    Placement: {
        "nothing": lambda: Placement(provider=_CPU, executed={}),
        "nan": lambda: Placement(provider=_CPU, executed={_CPU: math.nan}),
        "cut": lambda: Placement(provider=_CPU, executed={}, seen={_CPU: 3}, cut_after=1_000_000),
    },
    TaskAccuracy: {
        "nothing": lambda: TaskAccuracy(dataset="d.npz"),
        "nan": lambda: replace(_cut_task(), score_sum=math.nan),
        "cut": _cut_task,
    },
    TextScore: {
        "nothing": TextScore,
        "nan": lambda: replace(_cut_text(), nats=(math.nan,) * 3),
        "cut": _cut_text,
    },
    Limit: {kind: lambda: parse_limit("latency_p50 <= 1 s", place="") for kind in KINDS},
    Summary: {
        "nothing": lambda: summarise(make_result(status="crash")),
        "nan": lambda: _summary_with(Quantity(value=math.nan, unit="s")),
        "cut": lambda: _summary_with(None),
    },
    LimitOutcome: {
        "nothing": lambda: _outcome(summarise(make_result(status="crash"))),
        "nan": lambda: _outcome(_summary_with(Quantity(value=math.nan, unit="s"))),
        "cut": lambda: _outcome(_summary_with(None)),
    },
    GateResult: {
        "nothing": lambda: _gate("incomparable"),
        "nan": lambda: _gate("same", effect=math.nan),
        "cut": lambda: _gate("inconclusive"),
    },
    Answers: {
        "nothing": lambda: Answers(floor=floor_of(make_case()), compared=Accuracy()),
        "nan": lambda: _answers(sqnr_db=math.nan, compared=80),
        "cut": lambda: _answers(compared=0),
    },
    CaseResult | Answers: {
        "nothing": lambda: Answers(floor=floor_of(make_case()), compared=Accuracy()),
        "nan": _nan_result,
        "cut": lambda: _answers(compared=0),
    },
}


# -- finding ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judge:
    """One function that judges."""

    name: str
    function: Callable[..., object]
    parameters: Mapping[str, object]


def _modules() -> Iterator[ModuleType]:
    """Every module of the package that names the type, or a type that holds one."""
    sources = product()
    holders = {name for text in sources.values() for name in _classes_with_a_judgement(text)}
    for path, text in sources.items():
        if any(name in text for name in ("Judgement", *holders)):
            parts = ("pytest_ortbench", *path.removesuffix(".py").split("/"))
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if name not in _OF_THE_TYPE:
                yield importlib.import_module(name)


def _classes_with_a_judgement(text: str) -> Iterator[str]:
    for node in nodes_of(text) if "Judgement" in text else ():
        if isinstance(node, ast.ClassDef) and any(
            isinstance(field, ast.AnnAssign) and "Judgement" in ast.unparse(field.annotation)
            for field in node.body
        ):
            yield node.name


def _names(module: ModuleType) -> dict[str, object]:
    """What annotations of a module may name: its own names, and those it imports for types only."""
    found = dict(vars(module))
    for node in nodes_of(inspect.getsource(module)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                try:
                    source = importlib.import_module(node.module)
                except ImportError:
                    continue  # an optional package, whose types no judge takes
                found.setdefault(alias.asname or alias.name, getattr(source, alias.name, None))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "pytest":
                    found.setdefault(alias.name, importlib.import_module(alias.name))
    return found


def judges_in(module: ModuleType) -> Iterator[Judge]:
    """Yield the functions and methods of a module that return a judgement."""
    names = _names(module)
    for owner, function in _functions(module):
        if "return" not in function.__annotations__:
            continue
        hints = typing.get_type_hints(function, names)
        if _is_judgement(hints.pop("return")):
            name = f"{module.__name__}.{owner}{function.__name__}"
            yield Judge(name=name, function=function, parameters=hints)


def _functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield "", value
        elif inspect.isclass(value):
            for member in vars(value).values():
                member = member.fget if isinstance(member, property) else member
                member = getattr(member, "__func__", member)
                if inspect.isfunction(member):
                    yield f"{name}.", member


def _is_judgement(hint: object) -> bool:
    """Whether a type is a judgement, several of them, or a dataclass with a field that is one."""
    if hint is Judgement:
        return True
    if typing.get_origin(hint) is not None:
        return any(_is_judgement(part) for part in typing.get_args(hint))
    return isinstance(hint, type) and dataclasses.is_dataclass(hint) and _holds_one(hint)


def _holds_one(kind: type) -> bool:
    module = importlib.import_module(kind.__module__)
    hints = typing.get_type_hints(kind, _names(module)) if _mentions(kind) else {}
    return any(
        hint is Judgement or Judgement in typing.get_args(hint)
        for hint in hints.values()
        if typing.get_origin(hint) in (None, typing.Union, types.UnionType)
    )


def _mentions(kind: type) -> bool:
    return any("Judgement" in str(field.type) for field in dataclasses.fields(kind))


# -- feeding ----------------------------------------------------------------------------------


class CannotBuild(Exception):
    """Nobody says here what a parameter is to be given."""


def faults(judge: Judge) -> list[str]:
    """Say what is wrong with a judge: that it can't be fed, or answers good to bad evidence."""
    found = []
    for kind in KINDS:
        try:
            arguments = _arguments(judge, kind)
        except CannotBuild as error:
            return [str(error)]
        if arguments is None:
            continue
        for judgement in _judgements(judge.function(**arguments)):
            if judgement.is_good:
                found.append(f"{judge.name} calls {judgement.of} good, given {kind}")
            elif kind == "nothing" and not judgement.is_unjudged:
                found.append(f"{judge.name} calls {judgement.of} bad, given nothing")
    return found


def _arguments(judge: Judge, kind: str) -> dict[str, object] | None:
    """Arguments of one kind; ``None`` where no parameter can hold it."""
    signature = inspect.signature(judge.function)
    arguments: dict[str, object] = {}
    fed = False
    for name, parameter in signature.parameters.items():
        hint = judge.parameters.get(name)
        builders = _builders(hint)
        if builders is None:
            if parameter.default is not inspect.Parameter.empty:
                continue
            raise CannotBuild(f"{judge.name}: no evidence is built here for {name}: {hint}")
        if kind not in builders:
            return None
        arguments[name] = builders[kind]()
        fed = True
    if not fed:
        raise CannotBuild(f"{judge.name} takes no evidence at all")
    return arguments


def _builders(hint: object) -> Mapping[str, Callable[[], object]] | None:
    """Builders for a type, an optional one, or a sequence of one."""
    if hint in EVIDENCE:
        return EVIDENCE[hint]
    parts = [part for part in typing.get_args(hint) if part not in (type(None), Ellipsis)]
    if len(parts) != 1:
        return None
    inner = _builders(parts[0])
    if inner is None:
        return None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return {**inner, "nothing": lambda: None}
    if typing.get_origin(hint) in (tuple, list, collections.abc.Sequence):
        return {kind: _as_one_entry(build) for kind, build in inner.items()}
    return None


def _as_one_entry(build: Callable[[], object]) -> Callable[[], tuple[object, ...]]:
    return lambda: (build(),)


def _judgements(value: object) -> Iterator[Judgement]:
    if isinstance(value, Judgement):
        yield value
    elif isinstance(value, list | tuple | collections.abc.Iterator):
        for part in value:
            yield from _judgements(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if isinstance(inner, Judgement):
                yield inner


# -- tests ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def every() -> list[Judge]:
    """All judges of the package."""
    return [judge for module in _modules() for judge in judges_in(module)]


@pytest.fixture(scope="module")
def judges(every: list[Judge]) -> list[Judge]:
    """Those that are fed here."""
    return [judge for judge in every if judge.name not in HANDED_ON]


def test_what_is_not_fed_is_there(every: list[Judge]) -> None:
    """A name that nothing bears any more would excuse the next function that is called so."""
    assert set(HANDED_ON) <= {judge.name for judge in every}


def test_the_judges_of_a_case_are_found(judges: list[Judge]) -> None:
    names = {judge.name.rpartition(".")[2] for judge in judges}
    assert {"judge_accuracy", "judge_placement", "judge_task", "judge_warm_up"} <= names
    assert "judgements_of" in names


def test_no_judge_calls_missing_evidence_good(judges: list[Judge]) -> None:
    assert [fault for judge in judges for fault in faults(judge)] == []


def test_a_complete_case_is_good() -> None:
    """What is fed above is refused for what it lacks, not because nothing is ever good."""
    assert [one.of for one in judgements_of(make_result()) if one.is_good] == [
        "accuracy",
        "placement",
        "warm-up",
    ]


PLANTED = """
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged

if TYPE_CHECKING:
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.passes.task.facts import TaskAccuracy


@dataclass(frozen=True, kw_only=True)
class Verdict:
    judgement: Judgement
    text: str = ""


def honest(result: CaseResult) -> Judgement:
    return unjudged("load", "no load was measured")


def hopeful(result: CaseResult) -> Judgement:
    return good("load")


def hopeful_inside(result: CaseResult) -> Verdict:
    return Verdict(judgement=good("load"))


def hopeful_several(task: TaskAccuracy | None) -> tuple[Judgement, ...]:
    return (honest_task(task), good("load"))


def hopeful_of_nan(task: TaskAccuracy | None) -> Judgement:
    if task is None or task.samples < 100 and task.score_sum == task.score_sum:
        return unjudged("task", "too few samples")
    return bad("task", "low") if task.score_sum < 90 else good("task")


def rash(result: CaseResult) -> Judgement:
    return bad("load", "nothing was measured")


def honest_task(task: TaskAccuracy | None) -> Judgement | None:
    return None if task is None else unjudged("task", "too few samples")


def unknown(number: complex) -> Judgement:
    return unjudged("load", "never called")


def no_judge(result: CaseResult) -> str:
    return "good"


class Holder:
    def hopeful_method(self, result: CaseResult) -> Judgement:
        return good("load")
"""


@pytest.fixture(name="planted")
def _planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Judge]:
    path = tmp_path / "planted_judges.py"
    path.write_text(PLANTED, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("planted_judges", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return {judge.name.rpartition(".")[2]: judge for judge in judges_in(module)}


def test_planted_judges_are_found_by_their_annotation(planted: dict[str, Judge]) -> None:
    assert set(planted) == {
        "honest",
        "hopeful",
        "hopeful_inside",
        "hopeful_several",
        "hopeful_of_nan",
        "rash",
        "honest_task",
        "unknown",
        "hopeful_method",
    }


@pytest.mark.parametrize("name", ["honest", "honest_task"])
def test_planted_judges_that_are_honest_pass(planted: dict[str, Judge], name: str) -> None:
    assert faults(planted[name]) == []


@pytest.mark.parametrize(
    "name",
    ["hopeful", "hopeful_inside", "hopeful_several", "hopeful_of_nan", "rash", "hopeful_method"],
)
def test_planted_judges_that_call_nothing_good_are_caught(
    planted: dict[str, Judge], name: str
) -> None:
    assert faults(planted[name])


def test_a_judge_that_nobody_feeds_is_caught(planted: dict[str, Judge]) -> None:
    (fault,) = faults(planted["unknown"])
    assert "no evidence is built here for number" in fault
