"""Our cases in pytest-benchmark, with recorded results in place of an engine."""

from __future__ import annotations

import importlib
import json
import statistics
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.plugin import benchmark_bridge
from pytest_ortbench.plugin.benchmark_bridge import ReplayTimer, durations_of
from tests.results_factory import make_case, make_result

# pygal, which draws the histogram, brings importlib_metadata, which replaces the finder of
# distributions for good: a run in this process must not be the first to import it.
importlib.import_module("pygal")

RESULTS: dict[str, CaseResult] = {
    "fast": make_result(
        case=make_case(model="fast", batch=4, dims={"seq": 128}),
        median_ns=1_000_000,
        flags=[Flag(name="STEAL")],
    ),
    "slow": make_result(case=make_case(model="slow"), median_ns=3_000_000, seed=1),
    "broken": make_result(case=make_case(model="broken"), status="crash"),
}

KNOWN = {name: (result, summarise(result)) for name, result in RESULTS.items()}

#: Stands in for the plugin: a fixture, and the two things that the bridge asks it for.
CONFTEST = """
    import pytest
    from pytest_ortbench.plugin import benchmark_bridge, taken

    def pytest_configure(config):
        benchmark_bridge.register(config)
        if not hasattr(config.hook, "pytest_benchmark_update_json"):
            taken.offer_stand_in(config)

    def pytest_generate_tests(metafunc):
        if "ortbench" in metafunc.fixturenames:
            names = getattr(metafunc.module, "NAMES", ["fast", "slow"])
            metafunc.parametrize("ortbench", [object() for _ in names], ids=names, indirect=True)

    @pytest.fixture
    def ortbench(request):
        name = request.node.callspec.id
        def measure():
            if name == "broken":
                pytest.fail("the worker crashed", pytrace=False)
            request.node.measured = name
        return measure
"""

SUITE = """
    def test_latency(ortbench, benchmark):
        ortbench()

    def test_memory(ortbench):
        ortbench()
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest in a folder with the stand-in; warnings are errors."""
    monkeypatch.setattr(
        benchmark_bridge, "known_numbers", lambda item: KNOWN.get(getattr(item, "measured", ""))
    )
    monkeypatch.setattr(benchmark_bridge, "_has_cases", lambda _: True)
    monkeypatch.setattr(benchmark_bridge, "_machine_facts", lambda: {"cpu_model": "Example"})
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=SUITE)

    def run_pytest(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "no:ortbench", "-W", "error", *arguments)

    return run_pytest


def _rows(path: Path) -> dict[str, dict[str, object]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    return {row["name"]: row for row in document["benchmarks"]}


@pytest.mark.live
def test_timer_gives_recorded_durations_to_the_last_bit() -> None:
    timer = ReplayTimer()
    durations = [0.1 + 0.2, 1e-9, 123.456]
    timer.load(durations)
    replayed = []
    for _ in durations:
        start = timer()
        replayed.append(timer() - start)
    assert replayed == durations
    # Nothing is left, so it is a clock again.
    assert 0 < timer() <= timer()


def test_json_holds_exactly_our_samples_and_facts(run: Run, pytester: pytest.Pytester) -> None:
    result = run("--benchmark-json=out.json")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*benchmark: 2 tests*", "*test_latency?fast?*"])
    rows = _rows(pytester.path / "out.json")
    assert set(rows) == {"test_latency[fast]", "test_latency[slow]"}
    row = rows["test_latency[fast]"]
    stats = row["stats"]
    assert isinstance(stats, dict)
    assert stats["data"] == durations_of(RESULTS["fast"])
    assert stats["rounds"] == 1200
    assert stats["iterations"] == 1
    assert row["params"] == {
        "model": "fast",
        "precision": "native",
        "provider": "cpu",
        "batch": 4,
        "runtime": "current",
        "seq": 128,
    }
    info = row["extra_info"]
    assert isinstance(info, dict)
    assert info["case_id"] == RESULTS["fast"].case.case_id
    assert info["status"] == "measured"
    assert info["flags"] == "STEAL"
    assert info["samples"] == 1200
    assert info["onnxruntime"] == "1.32.0"
    assert 0 < info["latency_p50_low"] <= info["latency_p50"] <= info["latency_p50_high"]
    assert info["latency_p50"] == pytest.approx(1e-3, rel=0.05)
    options = row["options"]
    assert isinstance(options, dict)
    assert options["timer"] == "recorded"
    machine = json.loads((pytester.path / "out.json").read_text("utf-8"))["machine_info"]
    assert machine["ortbench"] == {"cpu_model": "Example"}


def test_own_tests_have_rows_without_taking_the_fixture(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_suite="""
            def test_fast_enough(ortbench):
                ortbench()

            def test_small_enough(ortbench):
                ortbench()
        """
    )
    run("--benchmark-json=out.json").assert_outcomes(passed=4)
    # One row a case: the first test of it.
    assert set(_rows(pytester.path / "out.json")) == {
        "test_fast_enough[fast]",
        "test_fast_enough[slow]",
    }
    # Nobody asked for a file: pytest-benchmark's table stays that of the tests that take it.
    run().stdout.no_fnmatch_line("*benchmark: * tests*")


def test_median_and_operations_are_those_of_all_inferences(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_result(case=make_case(model="fast"), median_ns=1_000_000)
    # Of each worker only its slower half was kept.
    measurements = [
        replace(
            one,
            samples=replace(
                one.samples,
                durations_ns=tuple(sorted(one.samples.durations_ns)[one.samples.count // 2 :]),
                stride=2,
            ),
        )
        for one in whole.measurements
    ]
    result = replace(whole, measurements=tuple(measurements))
    summary = summarise(result)
    monkeypatch.setitem(KNOWN, "fast", (result, summary))
    pytester.makepyfile(test_suite="NAMES = ['fast']\ndef test_it(ortbench): ortbench()")
    run("--benchmark-json=out.json").assert_outcomes(passed=1)
    stats = _rows(pytester.path / "out.json")["test_it[fast]"]["stats"]
    assert isinstance(stats, dict)
    known = {name: quantity.value for name, quantity in summary.quantities.items()}
    assert stats["median"] == known["latency_p50"]
    assert stats["mean"] == known["latency_mean"]
    assert stats["min"] == known["latency_min"]
    assert stats["rounds"] == 1200
    assert stats["ops"] == pytest.approx(known["throughput"], rel=1e-12)
    assert stats["total"] == pytest.approx(1200 * known["latency_mean"], rel=1e-12)
    every = [d / 1e9 for one in whole.measurements for d in one.samples.durations_ns]
    assert stats["max"] == max(every)
    assert stats["stddev"] == pytest.approx(statistics.stdev(every), rel=1e-6)


def test_only_skip_and_disable_behave(run: Run) -> None:
    run("--benchmark-only").assert_outcomes(passed=2, skipped=2)
    run("--benchmark-skip").assert_outcomes(passed=2, skipped=2)
    result = run("--benchmark-disable")
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*benchmark: * tests*")


def test_group_by_an_axis(run: Run) -> None:
    result = run("--benchmark-group-by=param:model")
    result.stdout.fnmatch_lines(["*benchmark 'model=fast': 1 tests*", "*'model=slow': 1 tests*"])


def test_save_compare_and_histogram(run: Run, pytester: pytest.Pytester) -> None:
    run("--benchmark-save=one").assert_outcomes(passed=4)
    # Nothing changed: no warning about another machine, and no regression.
    result = run(
        "--benchmark-compare", "--benchmark-compare-fail=mean:1%", "--benchmark-histogram=h"
    )
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_latency?fast? (0001_one)*", "*test_latency?fast? (NOW)*"])
    assert len(list(pytester.path.glob("h*.svg"))) == 1


def test_another_machine_is_seen_and_our_mere_presence_is_not(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_suite="def test_plain(benchmark): benchmark.pedantic(lambda: None)")
    monkeypatch.setattr(benchmark_bridge, "_has_cases", lambda _: False)
    run("--benchmark-save=one").assert_outcomes(passed=1)
    run("--benchmark-compare").assert_outcomes(passed=1)
    saved = next((pytester.path / ".benchmarks").rglob("0001_one.json"))
    document = json.loads(saved.read_text("utf-8"))
    assert "ortbench" not in document["machine_info"]
    document["machine_info"]["ortbench"] = {"cpu_model": "Another"}
    saved.write_text(json.dumps(document), "utf-8")
    with pytest.warns(match="machine_info is different.*Example.*Another"):
        pytester.runpytest_inprocess("-p", "no:ortbench", "--benchmark-compare")


def test_a_case_without_a_number_has_no_row_and_no_warning(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_suite="NAMES = ['fast', 'broken']\ndef test_latency(ortbench, benchmark): ortbench()"
    )
    result = run("--benchmark-json=out.json")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the worker crashed"])
    assert set(_rows(pytester.path / "out.json")) == {"test_latency[fast]"}


def test_a_measured_case_keeps_its_row_when_the_test_fails(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_suite="def test_latency(ortbench, benchmark):\n    ortbench()\n    assert not ortbench"
    )
    result = run("--benchmark-json=out.json")
    result.assert_outcomes(failed=2)
    assert set(_rows(pytester.path / "out.json")) == {"test_latency[fast]", "test_latency[slow]"}


def test_a_group_of_the_users_own_marker_is_kept(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_suite="""
            import pytest

            @pytest.mark.benchmark(group="mine")
            def test_latency(ortbench, benchmark):
                ortbench()
        """
    )
    run("--benchmark-json=out.json").assert_outcomes(passed=2)
    row = _rows(pytester.path / "out.json")["test_latency[slow]"]
    assert row["group"] == "mine"
    assert row["stats"]["data"] == durations_of(RESULTS["slow"])  # type: ignore[index]


def test_a_test_that_times_something_itself_is_left_alone(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_suite="""
            def test_own(ortbench, benchmark):
                ortbench()
                benchmark.pedantic(lambda: None, rounds=7)
        """
    )
    run("--benchmark-json=out.json").assert_outcomes(passed=2)
    row = _rows(pytester.path / "out.json")["test_own[fast]"]
    assert row["stats"]["rounds"] == 7  # type: ignore[index]
    assert "case_id" not in row["extra_info"]  # type: ignore[operator]


def test_without_pytest_benchmark_the_suites_run_and_others_are_told(
    run: Run, pytester: pytest.Pytester
) -> None:
    run("-p", "no:benchmark").assert_outcomes(passed=4)
    pytester.makepyfile(
        test_suite="""
            def test_uses_it(ortbench, benchmark):
                assert benchmark(max, 1, 2) == 2
                assert not benchmark.enabled

            def test_not_ours(benchmark):
                pass
        """
    )
    result = run("-p", "no:benchmark")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["fixture 'benchmark' *pytest-benchmark*"])


def test_somebody_elses_benchmark_fixture_is_not_replaced(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        other_plugin="""
            import pytest

            @pytest.fixture
            def benchmark():
                return "theirs"
        """,
        test_suite="def test_it(benchmark): assert benchmark == 'theirs'",
    )
    pytester.syspathinsert()
    run("-p", "no:benchmark", "-p", "other_plugin").assert_outcomes(passed=1)


FOREIGN = """
    class Theirs:  # has nothing of pytest-benchmark's
        def __call__(self, function):
            return function()
"""


@pytest.mark.parametrize(
    ("fixture", "rows"),
    [
        ("@pytest.fixture\ndef benchmark():\n    return Theirs()\n", 0),
        ("@pytest.fixture(name='benchmark')\ndef timed(ortbench):\n    return Theirs()\n", 0),
        ("@pytest.fixture\ndef benchmark(benchmark):\n    return benchmark\n", 2),
    ],
    ids=["function", "by name", "around pytest-benchmark's"],
)
def test_somebody_elses_fixture_gets_neither_timer_nor_replay(
    run: Run, pytester: pytest.Pytester, fixture: str, rows: int
) -> None:
    theirs = textwrap.dedent(FOREIGN)
    if not rows:  # as a plugin does that offers the fixture itself
        pytester.makeconftest(
            CONFTEST
            + """
    def pytest_sessionstart(session):
        plugins = session.config.pluginmanager
        plugins.unregister(plugins.get_plugin("benchmark"))
        """
        )
    (pytester.path / "test_suite.py").write_text(
        f"import pytest\n{theirs}\n{fixture}\n"
        "def test_latency(ortbench, benchmark, request):\n"
        "    ortbench()\n"
        "    marker = request.node.get_closest_marker('benchmark')\n"
        f"    assert (marker is None) == {rows == 0}\n"
    )
    run("--benchmark-json=out.json").assert_outcomes(passed=2)
    if rows:
        assert len(_rows(pytester.path / "out.json")) == rows


def test_a_plugins_fixture_of_another_function_name_is_not_hidden(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        other_plugin="""
            import pytest

            @pytest.fixture(name="benchmark")
            def timed():
                return "theirs"
        """,
        test_suite="def test_it(ortbench, benchmark): assert benchmark == 'theirs'",
    )
    pytester.syspathinsert()
    run("-p", "no:benchmark", "-p", "other_plugin").assert_outcomes(passed=2)
