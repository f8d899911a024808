"""Exports of decoders that can't be asked: nobody is accused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.export_check.numbers.verdict import judge_export
from pytest_ortbench.passes.export_check.questions import AskFile, FileAnswered
from pytest_ortbench.passes.export_check.run import measure
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest
from tests.planning.test_engines import ALONE, CPU
from tests.planning.test_transformers_sources import SOURCE
from tests.results_factory import make_result


class Refusing:
    """Answers that the file does not run, and starts nothing."""

    def ask(self, question: Any, **_: float) -> FileAnswered:
        assert isinstance(question, AskFile)
        count = len(question.choices)
        return FileAnswered(samples=(0,) * count, reasons=("capacity (0) is too small",) * count)


def test_a_file_that_reads_no_prompt_with_an_empty_cache_is_not_accused() -> None:
    model = replace(ALONE, exported_from=SOURCE)
    request = PlanRequest(models=(), generate="only", prompt_tokens=(16,))
    target = Target(runtime=Runtime(), providers=(CPU,))
    (planned,) = build_plan(request, [model], [target]).entries
    result = make_result(case=planned.case)
    check = measure(result, Means(launcher=cast("ProcessLauncher", Refusing())))
    assert "capacity (0)" in check.reason
    judgement = judge_export(replace(result, export_check=check))
    assert judgement is not None
    assert judgement.is_unjudged
