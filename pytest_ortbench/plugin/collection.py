"""From collected tests to plans: options and marker become a request, the planner does the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.errors import (
    NoModelError,
    OrtbenchError,
    UnknownSizeError,
    UsageError,
)
from pytest_ortbench.core.model_spec import is_model_file
from pytest_ortbench.gate.numbers.rules import parse_rules
from pytest_ortbench.models.resolve import models_of_project
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.decoder_notes import PlanNote
from pytest_ortbench.planning.endpoints import refuse_several_targets
from pytest_ortbench.planning.matrix import Plan, Planned, with_inputs
from pytest_ortbench.planning.providers import refuse_unused_options
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.marked_paths import placed_specs, texts_of_specs
from pytest_ortbench.plugin.marked_tests import is_chosen_by_marker
from pytest_ortbench.plugin.marker import AXES, MarkerError, Rejected, marker_error, marker_of
from pytest_ortbench.plugin.model_files import OnnxFile, is_suite
from pytest_ortbench.plugin.option_readers import refuse_absent_libraries
from pytest_ortbench.plugin.options import ROWS, Options
from pytest_ortbench.plugin.suite_files import files_of_models

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.core.run import Skip
    from pytest_ortbench.planning.planner import Planner
    from pytest_ortbench.runtimes.resolve import ChosenRuntimes
    from pytest_ortbench.session import Session

_MODELS_IGNORED = "--ort-models does not apply to model files that are named as arguments"


class Collection:
    """The matrices of the tests of one pytest run.

    Args:
        config: The run.
        options: What it was asked for.
        session: Makes the plans.
        notes: Notices to show after collection, those of the session among them.
        on_plan: Told of each test's request and plan.

    Attributes:
        fed: Feeds the cases of a plan as a gate has to compare them; ``None`` without one.
        notes: Notices to show after collection.
        skips: What was left out of all plans.
        usage_errors: What is wrong with options, each once.
        rejected: Number of tests whose own marker is wrong.
        without_models: What stands for no model that is there, in a run with a gate: an error
            unless the gate misses something.
        complete: Whether pytest came to the end of it.
    """

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        session: Session,
        notes: list[str],
        *,
        on_plan: Callable[[PlanRequest, Plan], None],
    ) -> None:
        self.fed: Callable[[PlanRequest, Plan], Plan] | None = None
        self.notes = notes
        self._told_of_models = False
        self.skips: dict[Skip, None] = {}
        self.usage_errors: dict[str, None] = {}
        self.rejected = 0
        self.without_models: dict[str, None] = {}
        self.complete = False
        self._config = config
        self._options = options
        self._session = session
        self._on_plan = on_plan
        self._plans: dict[str, tuple[PlanRequest, Plan]] = {}
        self._known_sizes: set[str] = set()
        self._foreign_sizes: dict[str, str] = {}
        self._paths: set[str] = set()
        self._noted: dict[PlanNote, None] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._provider_specs: dict[str, None] = {}
        self._making: dict[str, None] = {}
        self._suite_files: dict[str, dict[Path, None]] = {}

    @property
    def root(self) -> Path:
        """Folder that relative paths of the user start from."""
        return self._session.root

    @property
    def named_from(self) -> Path:
        """Folder that names of models start from."""
        return self._session.named_from

    @cached_property
    def runtimes(self) -> ChosenRuntimes:
        """Where to measure; environments that are not there yet are made at the first call."""
        chosen = self._session.runtimes
        self.skips.update(dict.fromkeys(chosen.skips))
        if all(runtime.shares_files for runtime in chosen.runtimes):
            place = self._options.place_of("custom_ops")
            refuse_absent_libraries(self._options.custom_ops, place=place)
        return chosen

    def another_planner(self, specs: Sequence[str] = (), *, place: str = "") -> Planner:
        """Return one that gives models names of its own, for other runtimes if some are named."""
        if not specs:
            return self._session.another_planner(self.runtimes)
        chosen = self._session.choose_runtimes(specs, place=place)
        self.skips.update(dict.fromkeys(chosen.skips))
        return self._session.another_planner(chosen)

    def unasked_tests(self) -> frozenset[str]:
        """Return the names of shipped tests whose pass takes long, and that nothing asks for.

        An option of the pass asks for them, a limit on one of its metrics, and whoever names the
        test in an argument or behind ``-k``.
        """
        limited = {entry.limit.metric.name for entry in self._options.limits}
        limited |= {rule.metric for rule in parse_rules(self._options.gate, place="")}
        asked = {row.asks_for for row in ROWS if getattr(self._options, row.field)}
        named = _named_tests(self._config.args)
        keyword = self._config.getoption("keyword").lower()
        return frozenset(
            entry.shipped_test
            for entry in PASSES
            if not entry.has_own_cases
            and entry.name not in asked
            and limited.isdisjoint(entry.metric_names)
            and entry.shipped_test not in named
            and entry.shipped_test.removeprefix("test_") not in keyword
        )

    def is_idle(self, test: pytest.Item | pytest.Collector) -> bool:
        """Whether a shipped test is about cases that there are none of, and nobody names it."""
        callspec, name = getattr(test, "callspec", None), getattr(test, "originalname", "")
        has_own_cases = any(entry.has_own_cases and entry.shipped_test == name for entry in PASSES)
        if callspec is None or not has_own_cases or name in _named_tests(self._config.args):
            return False
        return not isinstance(callspec.params.get("ortbench"), Planned)

    def _request(self, item: pytest.Item) -> PlanRequest:
        """The options as a request; a model file's own tests measure that file only."""
        file = item.getparent(OnnxFile)
        if file is not None and self._options.models and not self._told_of_models:
            self._told_of_models = True
            self.notes.append(_MODELS_IGNORED)
        return self.request_for((file.spec,) if file is not None else self._models_of(item))

    def request_for(self, models: tuple[str, ...]) -> PlanRequest:
        return PlanRequest.of_options(self._options, ROWS, models=models)

    def folder_requests(self) -> list[PlanRequest]:
        """Return what the folders of the command line ask for, where all their models are tests.

        Each model that is there has a request of its own; these are about the others.
        """
        if not self._config.getini("ort_collect"):
            return []
        named = (str(argument).partition("::")[0] for argument in self._config.args)
        folders = [self.root / name for name in named if not is_model_file(Path(name))]
        return [self.request_for((str(folder),)) for folder in folders if folder.is_dir()]

    def _models(self) -> tuple[str, ...]:
        if self._options.models:
            return self._options.models
        beside = [getattr(self._options, row.field) for row in ROWS if row.names_models]
        if any(beside):
            return tuple(dict.fromkeys(spec for specs in beside for spec in specs))
        offered = self._config.hook.pytest_ortbench_models(config=self._config)
        specs = [spec for returned in offered for spec in _specs_of_hook(returned)]
        return placed_specs(specs, (self._config.rootpath,))

    def _models_of(self, item: pytest.Item) -> tuple[str, ...]:
        """What option, ini key, hooks or the project's ``models/`` name; nothing: the default set.

        Only shipped tests measure the default set: a test of the user is meant for models of his.
        """
        models = self._models()
        return models if models or _is_shipped(item) else models_of_project(self._session.project)

    def _plan_for(self, definition: pytest.Item) -> Plan:
        """The plan of one test function; tests with equal axes share it."""
        request = marker_of(definition).apply(self._request(definition))
        if not request.models and not _is_shipped(definition):
            raise MarkerError(
                "no model is set for this test",
                place=definition.nodeid,
                hint="Write @pytest.mark.ortbench(models=['model.onnx']) above the test. For all "
                "tests, use --ort-models=model.onnx. A test that makes a model itself passes it to "
                "ortbench.measure(path)",
            )
        self._provider_specs.update(dict.fromkeys(request.providers))
        key = repr(request)
        if key not in self._plans:
            request, plan = self._plan_of_models_there(request, definition)
            plan = self._fed(request, plan)
            self._plans[key] = (request, plan)
            self._note(plan)
        request, plan = self._plans[key]
        self._on_plan(request, plan)
        names = AXES["models"] in marker_of(definition).axes
        files = files_of_models(definition, self._options, names=names)
        self._suite_files.setdefault(repr(request), {}).update(dict.fromkeys(files))
        return plan

    def suite_files(self, request: PlanRequest) -> Sequence[Path]:
        """Return the files that say which models a request has; none where it was typed."""
        return tuple(self._suite_files.get(repr(request), ()))

    def _plan_of_models_there(
        self, request: PlanRequest, definition: pytest.Item
    ) -> tuple[PlanRequest, Plan]:
        """Return the plan of a request, and the request without what only others have.

        Where a gate may miss models, those that are not there are left out; of a model file that
        is collected by itself, sizes that only others have.
        """
        is_gated = bool(self._options.against or self._options.baseline)
        models = request.models
        while models or not request.models:
            try:
                _ = self.runtimes  # what is wrong with them is known before a model is fetched
                plan = self._session.plan(replace(request, models=models))
                self._known_sizes |= {*request.dims}
                return request, plan
            except UnknownSizeError as error:
                if definition.getparent(OnnxFile) is None:
                    raise
                self._foreign_sizes.setdefault(error.name, str(error))
                left = {name: sizes for name, sizes in request.dims.items() if name != error.name}
                request = replace(request, dims=left)
            except NoModelError as error:
                if not is_gated or error.spec not in models:
                    raise
                told = marker_error(error, definition) or str(error)
                self.without_models.setdefault(told)
                models = tuple(spec for spec in models if spec != error.spec)
        return request, Plan(entries=())

    def settle(self) -> None:
        """Note sizes that no model file has, when all were collected."""
        for name, message in self._foreign_sizes.items():
            if name not in self._known_sizes:
                self.usage_errors[message] = None

    def _note(self, plan: Plan) -> None:
        """Note what a plan left out, and what it says of its models, each once."""
        self.skips.update(dict.fromkeys(plan.skips))
        self._paths |= {entry.case.model.path for entry in plan.entries}
        self._noted.update(dict.fromkeys(plan.notes))
        for note in self._noted:
            if note.moot_with in self._paths:
                self.notes[:] = [text for text in self.notes if text != note.text]
            elif note.text not in self.notes:
                self.notes.append(note.text)

    def note_making(self, definition: pytest.Item) -> bool:
        """Note a test function that makes its models, unless its marker names some or is wrong.

        Returns:
            Whether it is one.
        """
        try:
            values = marker_of(definition)
        except OrtbenchError:
            return False
        if AXES["models"] in values.axes:
            return False
        self._making[definition.nodeid] = None
        self._provider_specs.update(dict.fromkeys(values.apply(self.request_for(())).providers))
        return True

    def makes_models(self, item: pytest.Item) -> bool:
        """Whether a test makes the models that it measures."""
        owner = "" if item.parent is None else item.parent.nodeid
        return f"{owner}::{getattr(item, 'originalname', item.name)}" in self._making

    def plan_made(self, request: PlanRequest) -> Plan:
        """Return the plan of a model that a test made.

        Raises:
            OrtbenchError: for a model that is none, and for what does not go with it.
        """
        _ = self.runtimes
        plan = self._fed(request, self._session.plan(request))
        self._note(plan)
        self._ids.update((entry.case.key, entry.case.case_id) for entry in plan.entries)
        return plan

    def place_of(self, path: Path) -> str:
        """Return where a file lies, as names of models say it."""
        return self._session.planner.place_of(path)

    def entries_for(self, definition: pytest.Item) -> Sequence[Planned | Rejected]:
        """Return the cases of one test function.

        What is wrong with its own marker makes it one test that fails; what is wrong with an
        option is noted in :attr:`usage_errors` and ends the run before it starts. Neither is
        raised here, where pytest would show a traceback.
        """
        try:
            return _for_test(definition, self._plan_for(definition).entries)
        except OrtbenchError as error:
            message = marker_error(error, definition)
            if message is not None:
                self.rejected += 1
                return [Rejected(message=message)]
            self.usage_errors[str(error)] = None
            return []

    def _fed(self, request: PlanRequest, plan: Plan) -> Plan:
        """A plan with what plugins offer, and else as a gate has to compare it."""
        plan = self.with_offered_inputs(plan)
        return plan if self.fed is None else self.fed(request, plan)

    def with_offered_inputs(self, plan: Plan) -> Plan:
        """Ask plugins for real inputs of each case, if any plugin offers some."""
        hook = self._config.hook.pytest_ortbench_inputs
        if not hook.get_hookimpls():
            return plan
        entries = []
        for planned in plan.entries:
            path = hook(case=planned.case, config=self._config)
            entries.append(
                planned if path is None else with_inputs(planned, self._config.rootpath / path)
            )
        return replace(plan, entries=tuple(entries))

    def id_of(self, planned: Planned | Rejected) -> str:
        """The test id of a case: its case id, and the runtime where there are several."""
        if isinstance(planned, Rejected):
            return "rejected"
        key = planned.case.key
        if key not in self._ids:
            case_id, label = key
            several = len(self.runtimes.runtimes) > 1
            self._ids[key] = f"{case_id}+{label}" if several and label != "current" else case_id
        return self._ids[key]

    @property
    def collected(self) -> int | None:
        """Number of cases of all tests, deselected ones too; ``None`` if no test made a plan."""
        return len(self._ids) if self._plans else None

    @property
    def empty(self) -> bool:
        """Whether no test takes the fixture at all."""
        return self.collected is None and not self.rejected and not self._making

    @property
    def left_out(self) -> bool:
        """Whether tests take the fixture, and no case of theirs is left to be tried."""
        return bool(self._plans) and not self._ids and not self.rejected

    @property
    def why_no_case(self) -> str:
        """Why there is no case to measure, if there is none."""
        if not self.complete:
            return "no test that takes the ortbench fixture was collected"
        if self.empty:
            return "no test here takes the ortbench fixture"
        reasons = []
        if self.collected:
            cases = f"{self.collected} case{'s' if self.collected != 1 else ''}"
            marks = self._config.getoption("markexpr")
            by = f" by -m {marks!r}" if is_chosen_by_marker(self._config) else ""
            reasons.append(f"{cases} collected, all deselected{by}")
        if self.rejected:
            tests = f"{self.rejected} test{'s' if self.rejected != 1 else ''}"
            reasons.append(f"{tests} with a wrong marker or without a model")
        return ", ".join(reasons) or "all cases were left out"

    def name_of(self, planned: Planned) -> str:
        """The case in messages: as in the tables, where each runtime of several is named."""
        case_id, label = planned.case.key
        where = f"+{label}" if len(self.runtimes.runtimes) > 1 else ""
        return case_id + where + planned.case.provider.role_note

    def limits_of(self, item: pytest.Item) -> tuple[Limit, ...]:
        """Limits that the markers of a test set."""
        return marker_of(item).limits

    def refuse_unused_options(self) -> None:
        """Refuse options of a provider that no test and no other side of a gate asks for."""
        kind, _, value = self._options.against.partition(":")
        other = (value,) if kind == "provider" else ()
        refuse_unused_options(
            self._options.provider_options,
            (*self._provider_specs, *other),
            place=self._options.place_of("provider_options"),
        )

    def check_cases(self, cases: Sequence[Case]) -> None:
        """Refuse what was asked of an endpoint or of passes, and goes with no case."""
        refuse_several_targets(cases)
        for entry in PASSES:
            if entry.check_cases:
                entry.load(entry.check_cases)(self._options, cases)


def _specs_of_hook(returned: object) -> tuple[str, ...]:
    """The models that a hook returned.

    Raises:
        UsageError: for anything else.
    """
    try:
        return texts_of_specs(returned)
    except TypeError as error:
        raise UsageError(
            f"the hook returned {returned!r}, but must return a list of strings or paths",
            place="pytest_ortbench_models",
            hint="Return e.g. ['model.onnx']",
        ) from error


def _is_shipped(item: pytest.Item) -> bool:
    """Whether a test is one of the shipped suites, wherever it was collected."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    return code is not None and is_suite(Path(code.co_filename))


def _for_test(item: pytest.Item, entries: Sequence[Planned]) -> Sequence[Planned]:
    """Return the cases of a test: of a shipped one of a pass with cases of its own, these."""
    if not _is_shipped(item):
        return entries
    for owner in PASSES:
        if owner.has_own_cases and owner.shipped_test == item.name:
            return [entry for entry in entries if owner.is_for(entry.case)]
    return entries


def _named_tests(arguments: Sequence[str]) -> set[str]:
    """Names of tests, and of modules, among the arguments of the command line."""
    names: set[str] = set()
    for argument in map(str, arguments):
        file, *tests = argument.split("::")
        names |= {test.partition("[")[0] for test in tests}
        names.add(Path(file).stem if file.endswith(".py") else file.rpartition(".")[2])
    return names


def named_from(config: pytest.Config) -> Path:
    """Return the folder that names of models start from.

    pytest's root directory; or where pytest was started, if no configuration file is found: pytest
    then takes the folder that all its arguments lie in.
    """
    root = config.rootpath
    chosen = config.getoption("rootdir") is not None or config.inipath is not None
    return root if chosen or (root / "setup.py").is_file() else config.invocation_params.dir
