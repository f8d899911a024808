"""What a case is held to is judged in whichever test of it runs, or the run is red and says so.

Numbers are faked: what is tested is who carries a verdict, not what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ortbench.core.gate import ContrastVerdict, GateFinding, GateResult
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair

from .conftest import QUICK as KEPT
from .conftest import told as ours

ModelFile = Callable[..., Path]
QUICK = (*KEPT, "--ort-no-results", "--ort-json=run.json")

MODULE = """
import pytest

pytestmark = pytest.mark.ortbench(models="new.onnx")
"""

BOTH = """
def test_first(ortbench): {first}

def test_second(ortbench): {second}
"""


@dataclass(frozen=True)
class Way:
    """How tests of a case come not to run, or not to their end.

    Attributes:
        name: Short.
        body: The module behind the marker.
        arguments: Further arguments of pytest.
        conftest: A ``conftest.py``.
        judged: Whether a test of the case comes to its end all the same.
    """

    name: str
    body: str
    arguments: tuple[str, ...] = ()
    conftest: str = ""
    judged: bool = False


def _both(first: str = "pass", second: str = "pass", *, before: str = "") -> str:
    decorated = f"{before}\ndef test_first" if before else "def test_first"
    return BOTH.format(first=first, second=second).replace("def test_first", decorated, 1)


_SKIP, _FAIL = 'pytest.skip("no")', "assert 0"
_ALL = "pytestmark = [pytestmark, {mark}]\n"
_OTHER = "\ndef test_other(): pass\n"
_FIRST_OF_PLUGIN = """
import pytest

def pytest_runtest_setup(item):
    if item.name.startswith("{name}"):
        pytest.skip("another plugin")
"""
_RERUN = """
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in (1, 2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        for report in reports:
            if report.failed and attempt == 1:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed:
            break
        item._initrequest()
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True

def pytest_report_teststatus(report):
    if report.outcome == "rerun":
        return "rerun", "R", "RERUN"
"""
_GREEN_REPORTS = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if item.name.startswith("test_first") and report.failed:
        report.outcome, report.longrepr = "passed", None
    return report
"""

WAYS = [
    Way("first skipped by a mark", _both(before="@pytest.mark.skip(reason='no')"), judged=True),
    Way("first skipped by a condition", _both(before="@pytest.mark.skipif('True')"), judged=True),
    Way("first skipped in its body", _both(first=_SKIP), judged=True),
    Way("second skipped in its body", _both(second=_SKIP), judged=True),
    Way("first deselected", _both(), ("-k", "second"), judged=True),
    Way("first deselected by its id", _both(), ("--deselect=test_it.py::test_first",), judged=True),
    Way("first fails", _both(first=_FAIL), judged=True),
    Way("first fails as expected", _both(first=_FAIL, before="@pytest.mark.xfail"), judged=True),
    Way("first not run", _both(before="@pytest.mark.xfail(run=False)"), judged=True),
    Way(
        "first skipped by a plugin",
        _both(),
        conftest=_FIRST_OF_PLUGIN.format(name="test_first"),
        judged=True,
    ),
    Way(
        "first with an error in a fixture",
        "@pytest.fixture\ndef broken(): assert 0\n"
        + _both().replace("test_first(ortbench)", "test_first(ortbench, broken)"),
        judged=True,
    ),
    Way(
        "latency skipped behind another",
        _both(second=_SKIP).replace("test_second", "test_latency"),
        judged=True,
    ),
    Way(
        "latency skipped by a mark behind another",
        _both().replace("def test_second", "@pytest.mark.skip(reason='no')\ndef test_latency", 1),
        judged=True,
    ),
    Way(
        "a fixture around ours",
        "@pytest.fixture\ndef mine(ortbench): return 1\ndef test_first(mine): pass",
        judged=True,
    ),
    Way("expected to fail by the verdict", _both(before="@pytest.mark.xfail"), judged=True),
    Way(
        "expected to fail strictly",
        _both(before="@pytest.mark.xfail(strict=True)").partition("def test_second")[0],
        judged=True,
    ),
    Way("run again by a plugin", _both(), conftest=_RERUN, judged=True),
    Way("reported as passed by a plugin", _both(), conftest=_GREEN_REPORTS, judged=True),
    Way(
        "an error at teardown",
        "@pytest.fixture\ndef late():\n    yield\n    assert 0\n"
        + _both().replace("test_first(ortbench)", "test_first(ortbench, late)"),
        judged=True,
    ),
    Way("all skipped by a mark", _ALL.format(mark="pytest.mark.skip") + _both() + _OTHER),
    Way("all skipped in their bodies", _both(_SKIP, _SKIP) + _OTHER),
    Way(
        "all skipped in a fixture",
        "@pytest.fixture(autouse=True)\ndef gpu(): pytest.skip('no')\n" + _both(),
    ),
    Way(
        "all skipped by a plugin",
        _both() + _OTHER,
        conftest=_FIRST_OF_PLUGIN.format(name="test_first")
        + _FIRST_OF_PLUGIN.format(name="test_second").replace("pytest_runtest_setup", "f")
        + "\nsetup, pytest_runtest_setup = pytest_runtest_setup, None\n"
        "def pytest_runtest_setup(item):\n    setup(item)\n    f(item)\n",
    ),
    Way("all not run", _ALL.format(mark="pytest.mark.xfail(run=False)") + _both() + _OTHER),
    Way("all fail as expected before", _both(_SKIP, "pytest.xfail('no')") + _OTHER),
    Way(
        "all with an error in a fixture",
        _ALL.format(mark="pytest.mark.usefixtures('gone')") + _both(),
    ),
    Way("all deselected", _both() + _OTHER, ("-k", "other")),
    Way("all deselected and nothing left", _both(), ("-k", "nothing")),
    Way("stopped before it", "def test_before(): assert 0\n" + _both(), ("-x",)),
    Way(
        "stopped by a count before it",
        "def test_before(): assert 0\n" + _both(),
        ("--maxfail=1",),
    ),
    Way(
        "ended before it with success",
        "def test_before(): pytest.exit('done', returncode=0)\n" + _both(),
    ),
    Way("module skipped", 'pytest.importorskip("a_package_that_is_not_here")\n' + _both()),
    Way("interrupted before it", "def test_before(): raise KeyboardInterrupt\n" + _both()),
]

LIMIT, GATE, BASELINE = "limit", "gate", "baseline"


@pytest.fixture
def suite(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    drawn_numbers: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Way, str], pytest.RunResult]:
    """Run a way with one kind of judgement, which is a bad one."""
    monkeypatch.setattr(Gate, "judge", _slower)

    def run(way: Way, kind: str, *arguments: str) -> pytest.RunResult:
        model_file("new.onnx")
        model_file("old.onnx")
        if kind == BASELINE:
            _record(pytester)
        pytester.makepyfile(test_it=MODULE + way.body)
        if way.conftest:
            pytester.makeconftest(way.conftest)
        asked = {
            LIMIT: ("--ort-limits=latency_p50 <= 1 ns",),
            GATE: ("--ort-against=model:old.onnx",),
            BASELINE: ("--ort-baseline=before.json",),
        }[kind]
        return pytester.runpytest_inprocess(
            "-ra", *QUICK, *(arguments or asked), *way.arguments, no_reraise_ctrlc=True
        )

    return run


def _slower(_gate: Gate, pair: Pair, _rules: object, *, baseline: str, **_: object) -> GateResult:
    contrast = ContrastVerdict(
        statistic="floor",
        verdict="slower",
        effect=0.07,
        low=0.05,
        high=0.09,
        margin=0.03,
        p=0.001,
        launches=8,
    )
    result = GateResult(
        case_id=pair.contender.case_id,
        runtime=pair.contender.runtime.label,
        baseline=baseline,
        verdict="slower",
        contrasts=(contrast,),
    )
    return result.with_findings([GateFinding(about="latency", text="slower than it was")])


def _record(pytester: pytest.Pytester) -> None:
    """Store a run of the model, then make the file larger, which is a regression."""
    import onnx

    pytester.makepyfile(test_it=f"{MODULE}def test_first(ortbench): pass")
    assert pytester.runpytest(*QUICK).ret == 0
    (pytester.path / "run.json").rename(pytester.path / "before.json")
    proto = onnx.load(pytester.path / "new.onnx")
    proto.metadata_props.add(key="ballast", value="x" * 200)
    onnx.save(proto, pytester.path / "new.onnx")


BAD = {LIMIT: "limits exceeded", GATE: "gate failed", BASELINE: "gate failed"}


@pytest.mark.parametrize("kind", [LIMIT, GATE, BASELINE])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_bad_case_is_never_green(
    suite: Callable[..., pytest.RunResult], way: Way, kind: str
) -> None:
    result = suite(way, kind)
    assert result.ret != pytest.ExitCode.OK
    text = result.stdout.str()
    if way.judged:
        assert f"new/native/cpu/b1: {BAD[kind]}" in text
        assert "not judged" not in text
    else:
        told = [line for line in result.outlines if line.startswith("ortbench: ")]
        left = ("not judged", "no case was checked against", "nothing was compared")
        assert any(word in line for line in told for word in left), told


#: Every third one: each of them is another way to be judged, or not to be.
SOME = WAYS[::3]


@pytest.mark.parametrize("way", SOME, ids=lambda way: way.name)
def test_a_good_case_is_only_red_for_what_was_not_judged(
    suite: Callable[..., pytest.RunResult], way: Way
) -> None:
    result = suite(way, LIMIT, "--ort-limits=latency_p50 <= 1 s")
    told = [line for line in result.outlines if line.startswith("ortbench: ")]
    assert "exceeded" not in result.stdout.str()
    assert any("not judged" in line or "was checked" in line for line in told) != way.judged
    failed = result.parseoutcomes().keys() & {"failed", "failures", "errors", "error"}
    green = way.judged and not failed
    assert (result.ret == pytest.ExitCode.OK) == green


def test_a_limit_that_nobody_judged_is_red_under_xdist_too(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("new.onnx")
    pytester.makepyfile(test_it=f"{MODULE}{BOTH.format(first=_SKIP, second=_SKIP)}")
    result = pytester.runpytest_subprocess(*QUICK, "-n1", "--ort-limits=latency_p50 <= 1 s")
    result.assert_outcomes(skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (text,) = [text for text in ours(result) if text.startswith("not judged: ")]
    assert "'latency_p50 <= 1 s'" in text


@pytest.mark.parametrize("where", ["ini", "addopts"])
def test_limits_of_a_project_are_said_and_not_insisted_on_in_a_run_of_other_tests(
    suite: Callable[..., pytest.RunResult], pytester: pytest.Pytester, where: str
) -> None:
    limit = "latency_p50 <= 1 ns"
    lines = {"ini": f"ort_limits = {limit}", "addopts": f'addopts = "--ort-limits={limit}"'}
    pytester.makeini(f"[pytest]\n{lines[where]}")
    result = suite(Way("others", _both() + _OTHER), LIMIT, "-k", "other")
    result.assert_outcomes(passed=1, deselected=2)
    assert result.ret == pytest.ExitCode.OK
    assert len([text for text in ours(result) if f"'{limit}': " in text]) == 1


@pytest.mark.parametrize(
    ("body", "options", "fate"),
    [
        ("@pytest.mark.skip\n{test} pass", (), "skipped"),
        ("{test} pytest.skip('no')", (), "skipped"),
        ("@pytest.mark.xfail(run=False)\n{test} pass", (), "failed as expected (xfail)"),
        ("@pytest.mark.xfail\n{test} assert 0", (), "failed as expected (xfail)"),
        ("def test_before(): assert 0\n{test} pass", ("-x",), "did not run"),
        ("{test} assert 0", (), ""),
        ("{test} pass", (), ""),
    ],
)
def test_limits_of_a_marker_that_were_not_judged_are_said(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    drawn_numbers: None,
    body: str,
    options: tuple[str, ...],
    fate: str,
) -> None:
    model_file("new.onnx")
    mark = "pytest.mark.ortbench(models='new.onnx', limits=['latency_p50 <= 1 s'])"
    test = "def test_marked(ortbench):"
    path = pytester.makepyfile(f"import pytest\npytestmark = {mark}\n{body.format(test=test)}")
    result = pytester.runpytest_inprocess(*QUICK, *options)
    left = [line for line in result.outlines if line.startswith("ortbench: limits of a marker")]
    nodeid = f"{path.name}::test_marked[new/native/cpu/b1]"
    assert [line.rpartition(": ")[2] for line in left] == ([f"{nodeid} {fate}"] if fate else [])
