"""The pytest plugin: decides whether there is anything to do, and hands it on.

Nothing heavy is imported until a test of ours is collected.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_ortbench.core.model_spec import is_model_file
from pytest_ortbench.plugin.controllers_turn import (
    follows_workers,
    is_worker,
    keep_ours,
    leave_out,
    note_files,
    run_left_out,
)
from pytest_ortbench.plugin.foreign_logs import without_foreign_logs
from pytest_ortbench.plugin.model_files import (
    ModelPackage,
    OnnxFile,
    Suite,
    expect,
    folders_of_models_alone,
    folders_to_export,
    holds_named,
    how_to_export,
    how_to_measure,
    is_foreign_folder,
    is_named,
    is_named_model,
    is_named_source,
    is_suite,
    keep_from_testmon,
    note_passed_over,
    refuse_missing_files,
    refuse_uncollected,
)
from pytest_ortbench.plugin.named_functions import (
    SourceFile,
    functions_named,
    holds_functions,
    is_named_alone,
    take_typed,
    tell_worker,
)
from pytest_ortbench.plugin.option_sources import add_options, is_asked_for, refuse_misspelt
from pytest_ortbench.plugin.options import MARKER_KEYWORDS
from pytest_ortbench.plugin.own_tests import is_ours, planned_of
from pytest_ortbench.plugin.taken import (
    bench_of,
    existing_bench,
    offer_stand_in,
    ortbench,
    taken_by,
)

if TYPE_CHECKING:
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.judges import Judges

__all__ = ["ortbench"]

#: The first version of pytest with all that is used here: numbers as types of ini keys.
_OLDEST = (8, 4)
_Suite = TypeVar("_Suite", bound=Suite)
#: Model files of the folders that hold no test, by folder.
_ALONE = pytest.StashKey[dict[str, list[Path]]]()


def _judges_of(bench: Bench) -> Judges:
    """Return what the cases of a run are held to; only a run with tests of ours has judges."""
    from pytest_ortbench.plugin.judges import Judges

    return Judges.of(bench)


def _at_end(item: pytest.Item, planned: Planned) -> list[str]:
    """Judge the case of a test that is at its end; return what fails the test."""
    with without_foreign_logs():
        return _judges_of(bench_of(item.config)).judging.at_end(item, planned)


def _are_left_out(config: pytest.Config) -> bool:
    """Whether none of our tests runs in this process, so that none is planned.

    A worker plans where one case is named, which pytest must find.
    """
    if is_worker(config):
        return not any("[" in str(argument) for argument in config.args)
    return bool(config.getoption("benchmark_skip", False))


def _shipped(kind: type[_Suite], parent: pytest.Collector, path: Path) -> _Suite:
    """Return the collector of shipped tests at a path."""
    return _prepared(kind.from_parent(parent, path=path))


def _prepared(suite: _Suite) -> _Suite:
    """Have a collector of shipped tests leave out what nothing asks for."""
    if not _are_left_out(suite.config):
        collection = bench_of(suite.config).collection
        suite.unasked, suite.is_idle = collection.unasked_tests(), collection.is_idle
    return suite


def _cases_of(item: pytest.Item) -> tuple[Planned, ...]:
    """Return the cases of a test: that of the matrix, and those of models that it made."""
    taken, planned = taken_by(item), planned_of(item)
    if taken is not None:
        return taken.planned
    return () if planned is None else (planned,)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register options and ini keys, where pytest is new enough for them.

    Raises:
        UsageError: for an older one, which an installation without dependencies leaves in place.
    """
    if pytest.version_tuple < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise pytest.UsageError(
            f"pytest-ortbench needs pytest {oldest} or newer, and this is {pytest.__version__}. "
            f"Run: pip install 'pytest>={oldest}'. To run without the plugin, add: -p no:ortbench"
        )
    add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """Refuse a misspelt option of ours before pytest does, which names no other."""
    outcome = yield
    refuse_misspelt(parser, args)
    return outcome


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    from pytest_ortbench.plugin import hookspec

    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; check the options at once, so that a wrong one costs no time."""
    take_typed(config)
    if config.getoption("benchmark_compare", None):
        # pytest-benchmark reads stored runs before a test is collected, and asks us about them.
        from pytest_ortbench.plugin import benchmark_bridge

        benchmark_bridge.register(config)
    keywords = ", ".join(f"{name}=…" for name in MARKER_KEYWORDS)
    config.addinivalue_line(
        "markers",
        f"ortbench({keywords}): axes and limits of a test that takes the ortbench fixture",
    )
    if is_asked_for(config) and not _are_left_out(config):
        bench_of(config)
    if not hasattr(config.hook, "pytest_benchmark_update_json"):
        offer_stand_in(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Refuse a misspelt model file before pytest does, which names no other."""
    refuse_missing_files(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect a model file that was named on the command line, and a shipped suite anyhow."""
    collectors = yield
    functions = functions_named(file_path, parent.config)
    if functions:
        source = SourceFile.from_parent(parent, path=file_path)
        source.prepare = _prepared
        alone = is_named_alone(file_path, functions, parent.config)
        return [source] if alone else [*collectors, source]
    is_asked = is_model_file(file_path) and is_named(file_path, parent.config)
    if is_asked or is_named_model(file_path, parent.config):
        return [*collectors, _shipped(OnnxFile, parent, file_path)]
    if not collectors and is_named_source(file_path, parent.config):
        return [_shipped(OnnxFile, parent, file_path)]
    if is_model_file(file_path):
        note_passed_over(file_path, parent.config)
    if is_suite(file_path):
        others = [each for each in collectors if not isinstance(each, pytest.Module)]
        return [_shipped(Suite, parent, file_path), *others]
    return collectors


@pytest.hookimpl(wrapper=True)
def pytest_collect_directory(
    path: Path, parent: pytest.Collector
) -> Generator[None, pytest.Collector | None, pytest.Collector | None]:
    """Take a folder that is called like a model file for one, so that its row says what it is.

    A package that holds a model file is not imported for it.
    """
    collector = yield
    if is_model_file(path) and is_named(path, parent.config):
        return _shipped(OnnxFile, parent, path)
    if is_foreign_folder(path, parent.config):
        return _shipped(OnnxFile, parent, path)
    if type(collector) is pytest.Package and (
        holds_named(path, parent.config) or holds_functions(path, parent.config)
    ):
        return ModelPackage.from_parent(parent, path=path)
    return collector


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note a test with our marker, which must take the fixture; one that takes it gets the marker.

    So ``-m ortbench`` and ``-m "not ortbench"`` know tests of model files, and unmarked ones.
    """
    if not is_ours(item):
        return
    if item.get_closest_marker("ortbench") is None:
        item.add_marker(pytest.mark.ortbench)
    if item.config.getoption("benchmark_skip", False):
        item.add_marker(pytest.mark.skip(reason="benchmarks are skipped (--benchmark-skip)"))
    elif not is_worker(item.config):
        bench_of(item.config).misplaced.note(item)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose marker would do nothing; have packages imported for tests of Python."""
    bench = existing_bench(item.config)
    if bench is not None and item.nodeid in bench.misplaced.messages:
        pytest.fail(bench.misplaced.messages[item.nodeid], pytrace=False)
    if bench is not None:
        bench.complaints.begin(item)
    expect(item)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case of the matrix; one that makes its models stays as it is."""
    if _are_left_out(metafunc.config):
        return
    is_taken = "ortbench" in metafunc.fixturenames
    if not is_taken and metafunc.definition.get_closest_marker("ortbench") is None:
        return
    from pytest_ortbench.plugin import benchmark_bridge
    from pytest_ortbench.plugin.making_tests import measures_itself
    from pytest_ortbench.plugin.marked_tests import asks_while_it_runs

    if not is_taken:
        if not asks_while_it_runs(metafunc):
            return
        metafunc.fixturenames.append("ortbench")

    benchmark_bridge.register(metafunc.config)
    bench = bench_of(metafunc.config)
    if bench.options.against or bench.options.baseline:
        _judges_of(bench)  # what the cases of a gate are fed
    if measures_itself(metafunc) and bench.collection.note_making(metafunc.definition):
        return
    with without_foreign_logs():
        entries = bench.collection.entries_for(metafunc.definition)
    if not entries and metafunc.config.getini("empty_parameter_set_mark") in ("", "skip"):
        # What pytest puts in place of no case is called NOTSET.
        reason = "all cases of this test were left out; the lines before the first test say why"
        no_case = pytest.param(None, marks=pytest.mark.skip(reason=reason))
        metafunc.parametrize("ortbench", [no_case], ids=["no case"], indirect=True)
        return
    metafunc.parametrize(
        "ortbench", entries, ids=[bench.collection.id_of(entry) for entry in entries], indirect=True
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """End the run if an option is wrong; add what the gate misses, before anything is selected."""
    refuse_uncollected(config)
    if is_worker(config):
        leave_out(config, items)
    keep_ours(config, items)
    config.stash[_ALONE] = folders_of_models_alone(config, items)
    bench = existing_bench(config)
    if bench is None:
        return (yield)
    bench.misplaced.settle()
    bench.collection.settle()
    if bench.collection.usage_errors:
        raise pytest.UsageError(*bench.collection.usage_errors)
    from pytest_ortbench.core.errors import OrtbenchError
    from pytest_ortbench.plugin.removed import removed_items

    try:
        with without_foreign_logs():
            items[:0] = removed_items(bench, _judges_of(bench).gating, session, items)
    except OrtbenchError as error:
        raise pytest.UsageError(str(error)) from error
    outcome = yield
    bench.collection.complete = True
    return outcome


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Join what the selected tests need of each case, before the first of them runs.

    Now, when every plugin has taken out what it takes out.
    """
    bench = existing_bench(session.config)
    if bench is None or not bench.collection.complete:
        return
    from pytest_ortbench.core.errors import OrtbenchError

    try:
        with without_foreign_logs():
            judges = _judges_of(bench)
            judges.select(session.items)
            session.items[:] = judges.ordered(session.items)
    except OrtbenchError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> object:
    """Have a time limit of pytest-timeout end a test of ours alone: its threads end the run."""
    in_main = threading.current_thread() is threading.main_thread()
    if settings.method != "thread" or not (
        hasattr(signal, "SIGALRM") and in_main and is_ours(item)
    ):
        return None
    return item.ihook.pytest_timeout_set_timer(
        item=item, settings=settings._replace(method="signal")
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist which functions were named as models."""
    tell_worker(node)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear from a worker of pytest-xdist that is done which of our tests it left out."""
    note_files(node.config, getattr(node, "workeroutput", {}).get("ortbench", ()))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Note that tests are run: only then something is missing where nothing was judged.

    Under pytest-xdist ours are run when all others have.
    """
    bench = existing_bench(session.config)
    broken = session.testsfailed and not session.config.option.continue_on_collection_errors
    if bench is not None and not broken and not session.config.option.collectonly:
        bench.ran = True
    outcome = yield
    run_left_out(session)
    return outcome


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> list[str]:
    """Say how many cases there are, and what was left out and why."""
    alone = config.stash.get(_ALONE, {})
    advice = [how_to_measure(folder, models, config) for folder, models in alone.items()]
    advice += [how_to_export(folder) for folder in folders_to_export(config, items, alone)]
    lines = [f"ortbench: {text}" for text in advice]
    bench = existing_bench(config)
    if bench is None or bench.collection.usage_errors:
        return lines
    from pytest_ortbench.plugin.terminal import collection_lines

    any_test = bool(items) or follows_workers(config)
    return [*lines, *collection_lines(bench, _judges_of(bench), any_test)]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Measure the case of a test whose body is done, and check what holds for it."""
    try:
        outcome = yield
        case = taken_by(pyfuncitem)  # only now: the body may have asked for it
        if case is not None:
            case.finish(pyfuncitem, _at_end)
        elif planned_of(pyfuncitem) is not None:
            pytest.fail(
                f"{pyfuncitem.nodeid}: nothing was measured, because another fixture is called "
                "'ortbench' and does not use the plugin's. Give it another name",
                pytrace=False,
            )
    except pytest.skip.Exception:
        case = taken_by(pyfuncitem)
        if case is not None:
            case.skipped(pyfuncitem, _at_end)
        raise
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Check what holds for the case of a test that is over, if no test that is left can."""
    bench = existing_bench(item.config)
    cases = () if bench is None else _cases_of(item)
    if bench is None or not cases:
        return (yield)
    from pytest_ortbench.plugin.measured import fail

    judging = _judges_of(bench).judging
    try:
        yield
    except BaseException:
        for planned in cases:
            judging.left(item, planned)
        raise
    with without_foreign_logs():
        named = [(bench.name_of(planned), judging.over(item, planned)) for planned in cases]
    fail("", [f"{name}: {text}" for name, problems in named for text in problems])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the metrics of the case and the verdicts on it into the test's JUnit properties."""
    bench = existing_bench(item.config)
    if bench is not None and call.when != "setup":
        for planned in _cases_of(item):
            known = set(item.user_properties)
            properties = _judges_of(bench).properties_of(planned)
            item.user_properties.extend(entry for entry in properties if entry not in known)
    report = yield
    if bench is not None and report.failed and call.excinfo is not None:
        cases = _cases_of(item)
        if cases or is_ours(item):
            bench.complaints.failed(item, call.excinfo, cases)
    keep_from_testmon(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the documents; fail a run that measured nothing at all, or could not write them."""
    bench = existing_bench(session.config)
    if bench is None or is_worker(session.config):
        return
    from pytest_ortbench.plugin.outputs import STOPPED, finish

    interrupted = session.exitstatus in STOPPED
    with without_foreign_logs():
        failed = finish(bench, _judges_of(bench), interrupted=interrupted)
    if failed and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, the lines that answer the question, and where the files are."""
    bench = existing_bench(terminalreporter.config)
    if bench is not None:
        from pytest_ortbench.plugin.terminal import write_summary

        write_summary(bench, terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End whatever may still run."""
    bench = existing_bench(config)
    if bench is not None:
        bench.close()
