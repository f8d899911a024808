"""The hooks for others: each docstring's example runs against its own specification."""

from __future__ import annotations

import inspect
import textwrap
from types import ModuleType

import pluggy
import pytest

from pytest_ortbench.plugin import hookspec
from tests.results_factory import make_case, make_failure, make_result

HOOKS = sorted(name for name in vars(hookspec) if name.startswith("pytest_ortbench_"))


def _example(name: str) -> ModuleType:
    """The code behind ``Example::`` in a hook's docstring, as a plugin."""
    text = inspect.getdoc(getattr(hookspec, name)) or ""
    code = textwrap.dedent(text.partition("Example::")[2])
    plugin = ModuleType(f"example_of_{name}")
    vars(plugin)["pytest"] = pytest
    exec(code, plugin.__dict__)  # our own documentation
    return plugin


def _call(name: str, **arguments: object) -> object:
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspec)
    manager.register(_example(name))
    manager.check_pending()
    hook: pluggy.HookCaller = getattr(manager.hook, name)
    assert len(hook.get_hookimpls()) == 1
    return hook(config=None, **arguments)


def test_these_are_the_hooks() -> None:
    assert HOOKS == [
        "pytest_ortbench_case_measured",
        "pytest_ortbench_inputs",
        "pytest_ortbench_machine_info",
        "pytest_ortbench_models",
    ]


def test_models_of_all_plugins_are_asked_for() -> None:
    assert _call("pytest_ortbench_models") == [["exports/detector.onnx", "builtin:mobilenet_v2"]]


def test_inputs_come_from_the_first_that_answers() -> None:
    case = make_case(model="detector", batch=4)
    assert _call("pytest_ortbench_inputs", case=case) == "photos/batch_4.npz"
    assert _call("pytest_ortbench_inputs", case=make_case(model="other")) is None


def test_machine_info() -> None:
    assert _call("pytest_ortbench_machine_info") == [{"asset": "lab-07", "cooling": "passive"}]


def test_case_measured(capsys: pytest.CaptureFixture[str]) -> None:
    result = make_result(status="crash", failure=make_failure())
    _call("pytest_ortbench_case_measured", result=result)
    assert capsys.readouterr().out.split()[:2] == [result.case.case_id, "crash"]
