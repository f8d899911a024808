"""What ``pytest_ortbench_machine_info`` may return: the document holds text, and a run is long."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK

ModelFile = Callable[..., Path]


def test_numbers_are_written_as_text_and_the_run_is_kept(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    # Without that, no line of the journal and no document could be written, with exit status 0.
    model_file()
    pytester.makeconftest(
        """
        def pytest_ortbench_machine_info():
            return {"slots": 4, "cooled": True, "litres": 0.5, "asset": "lab-07"}
        """
    )
    result = pytester.runpytest("mlp.onnx", "-k", "latency", *QUICK)
    result.assert_outcomes(passed=1)
    (document,) = pytester.path.glob("results/*/run.json")
    facts = json.loads(document.read_text(encoding="utf-8"))["machine"]["volatile"]
    offered = {"slots": "4", "cooled": "True", "litres": "0.5", "asset": "lab-07"}
    assert {name: facts.get(name) for name in offered} == offered


@pytest.mark.parametrize(
    ("returned", "said", "kept"),
    [
        ('{"slots": [1, 2]}', "'slots' is [1, 2], not a string", ()),
        ('{"asset": None}', "'asset' is None, not a string", ("--ort-no-results",)),
        ("{4: 'slots'}", "the key 4 is not a string", ()),
        ('["lab-07"]', "['lab-07'] is not a dictionary", ()),
    ],
)
def test_what_no_document_can_hold_is_refused_before_measuring_and_names_its_plugin(
    pytester: pytest.Pytester,
    model_file: ModelFile,
    returned: str,
    said: str,
    kept: tuple[str, ...],
) -> None:
    model_file()
    pytester.makeconftest("def pytest_ortbench_machine_info(): return {'asset': 'lab-07'}")
    pytester.syspathinsert()
    pytester.makepyfile(odd_lab=f"def pytest_ortbench_machine_info(): return {returned}")
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "-p", "odd_lab", *kept, *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert line == (
        f"ERROR: pytest_ortbench_machine_info of odd_lab: {said}. "
        'Return a dictionary of strings, e.g. {"asset": "lab-07"}'
    )
    assert not (pytester.path / "results").exists()


def test_of_several_the_one_called_last_has_its_way(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.syspathinsert()
    pytester.makepyfile(
        early=(
            "import pytest\n"
            "@pytest.hookimpl(tryfirst=True)\n"
            "def pytest_ortbench_machine_info(): return {'asset': 'early', 'rack': '3'}"
        ),
        late=(
            "import pytest\n"
            "@pytest.hookimpl(trylast=True)\n"
            "def pytest_ortbench_machine_info(): return {'asset': 'late'}"
        ),
        silent="def pytest_ortbench_machine_info(): return None",
    )
    plugins = ("-p", "early", "-p", "late", "-p", "silent")
    result = pytester.runpytest("mlp.onnx", "-k", "latency", *plugins, *QUICK)
    result.assert_outcomes(passed=1)
    (document,) = pytester.path.glob("results/*/run.json")
    facts = json.loads(document.read_text(encoding="utf-8"))["machine"]["volatile"]
    assert (facts["asset"], facts["rack"]) == ("late", "3")
