"""What is wrong with an export is found and named, and a right one is not accused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.analysis.inaccuracy import judge_accuracy
from pytest_ortbench.analysis.judgements import is_barred, judgements_of
from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.accuracy import Accuracy, OutputAccuracy, ReferenceSpread, SpreadTrial
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.source import Source
from pytest_ortbench.passes.export_check.facts import CheckedSizes, ExportCheck
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.verdict import export_sqnr_db, judge_export
from tests.passes.export_check.answered import checked, network, right
from tests.results_factory import make_case, make_result

MODEL = make_case().model


def spread(db: float | None, *trials: str) -> ReferenceSpread:
    """What a file says of itself: every output this near, in float64 among others."""
    outputs = tuple(
        OutputAccuracy(name=name, kind="float", finite=True, sqnr_db=db, exact=db is None)
        for name in ("scores", "states")
    )
    names = trials or ("again", "moved", "one-thread", "float64")
    return ReferenceSpread(
        trials=tuple(SpreadTrial(name=name, samples=2, outputs=outputs) for name in names)
    )


def result_of(check: ExportCheck) -> CaseResult:
    result = replace(make_result(), export_check=check)
    return replace(result, flags=flags_of(result))


def judged(check: ExportCheck) -> Judgement:
    judgement = judge_export(result_of(check))
    assert judgement is not None
    return judgement


def test_a_right_export_is_not_accused(tmp_path: Path) -> None:
    check = checked(tmp_path, right)
    nearest = export_sqnr_db(check)
    assert nearest is not None
    assert nearest > 120
    assert export_faults(check, MODEL) == ()
    assert judged(check).is_good
    result = result_of(check)
    assert "WRONG-EXPORT" not in [flag.name for flag in result.flags]
    assert not is_barred(result, judgements_of(result))
    limit = parse_limit("export_sqnr >= 100 dB", place="")
    (outcome,) = check_limits([limit], summarise(result))
    assert outcome.judgement.is_good


def test_an_equal_export_is_exact(tmp_path: Path) -> None:
    check = checked(tmp_path, network)
    assert export_sqnr_db(check) is None
    assert judged(check).is_good


@pytest.mark.parametrize("epsilon", [1e-3, 1e-4, 1e-6, 3e-6])
def test_a_wrong_epsilon_is_found(tmp_path: Path, epsilon: float) -> None:
    check = checked(tmp_path, lambda feeds: network(feeds, epsilon=epsilon, kind="float32"))
    check = replace(check, spread=spread(140.0))
    (fault,) = export_faults(check, MODEL)
    assert fault.kind == "different"
    assert fault.outputs == ("scores", "states")
    result = result_of(check)
    assert "WRONG-EXPORT" in [flag.name for flag in result.flags]
    assert is_barred(result, judgements_of(result))


def test_a_difference_that_the_file_has_from_itself_is_rounding(tmp_path: Path) -> None:
    check = checked(tmp_path, lambda feeds: network(feeds, epsilon=1e-6, kind="float32"))
    nearest = export_sqnr_db(check)
    assert nearest is not None
    assert export_faults(replace(check, spread=spread(nearest + 19)), MODEL) == ()
    assert export_faults(replace(check, spread=spread(nearest + 21)), MODEL) != ()


def test_without_float64_only_what_converters_promise_is_asked(tmp_path: Path) -> None:
    check = checked(tmp_path, lambda feeds: network(feeds, epsilon=1e-6, kind="float32"))
    nearest = export_sqnr_db(check)
    assert nearest is not None
    assert 100 < nearest < 120
    assert export_faults(replace(check, spread=spread(None, "again", "moved")), MODEL) == ()
    coarse = checked(tmp_path, lambda feeds: network(feeds, epsilon=1e-3, kind="float32"))
    assert export_faults(replace(coarse, spread=spread(None, "again", "moved")), MODEL) != ()


def swapped(feeds: Mapping[str, Any]) -> list[Any]:
    return right(feeds)[::-1]


def test_swapped_outputs_are_named(tmp_path: Path) -> None:
    faults = export_faults(checked(tmp_path, swapped), MODEL)
    assert [fault.kind for fault in faults] == ["swapped", "swapped"]
    pairs = {
        fault.confusion.output: fault.confusion.source_output
        for fault in faults
        if fault.confusion is not None
    }
    assert pairs == {"scores": "states", "states": "scores"}


def test_swapped_outputs_of_two_shapes_are_named(tmp_path: Path) -> None:
    def source(feeds: Mapping[str, Any]) -> list[Any]:
        scores, states = network(feeds)
        return [scores, states[:, :3]]

    check = checked(tmp_path, lambda feeds: source(feeds)[::-1], source)
    assert {fault.kind for fault in export_faults(check, MODEL)} == {"swapped"}
    assert len(check.confusions) == 2


def test_an_output_that_is_given_twice_is_named(tmp_path: Path) -> None:
    check = checked(tmp_path, lambda feeds: [right(feeds)[1]] * 2)
    (fault,) = export_faults(check, MODEL)
    assert (fault.kind, fault.outputs) == ("swapped", ("scores",))


def refuses(feeds: Mapping[str, Any]) -> list[Any]:
    if len(feeds["x"]) != 4:
        raise ValueError("Reshape 'node_view': the shape is not {4,8}")
    return right(feeds)


def bakes_in(feeds: Mapping[str, Any]) -> list[Any]:
    """Pads or cuts to four rows, as a constant shape with a broadcast does."""
    outputs = []
    for values in right(feeds):
        baked = np.zeros((4, *values.shape[1:]), "float32")
        baked[: len(values)] = values[:4]
        outputs.append(baked)
    return outputs


def divides(feeds: Mapping[str, Any]) -> list[Any]:
    """Has the right shapes and the batch of the example as a constant divisor."""
    scores, states = right(feeds)
    return [scores * np.float32(len(feeds["x"]) / 4), states]


@pytest.mark.parametrize(
    ("file", "outputs"),
    [(refuses, ()), (bakes_in, ("scores", "states")), (divides, ("scores",))],
)
def test_a_frozen_batch_is_named(tmp_path: Path, file: Any, outputs: tuple[str, ...]) -> None:
    (fault,) = export_faults(checked(tmp_path, file), MODEL)
    assert (fault.kind, fault.dimension) == ("frozen", "batch")
    assert (fault.right_at, fault.wrong_at) == ((4,), (1, 2, 3))
    assert fault.outputs == outputs


def test_a_batch_that_is_frozen_away_from_the_usual_one_is_named(tmp_path: Path) -> None:
    (fault,) = export_faults(checked(tmp_path, refuses, batches=(1, 2, 4)), MODEL)
    assert (fault.kind, fault.right_at, fault.wrong_at) == ("frozen", (4,), (1, 2))


def test_a_frozen_batch_explains_all_choices_that_keep_a_wrong_one(tmp_path: Path) -> None:
    check = checked(tmp_path, divides, batches=(1, 4))
    wrong, good = check.choices
    choices = (
        replace(wrong, sizes={"batch": 1, "height": 8}),
        replace(good, sizes={"batch": 4, "height": 8}),
        replace(wrong, sizes={"batch": 1, "height": 9}, changed=("height",)),
    )
    (fault,) = export_faults(replace(check, choices=choices), MODEL)
    assert (fault.kind, fault.dimension) == ("frozen", "batch")


def test_sizes_that_the_source_refuses_accuse_nobody(tmp_path: Path) -> None:
    def source(feeds: Mapping[str, Any]) -> list[Any]:
        if len(feeds["x"]) != 4:
            raise ValueError("this network takes four")
        return network(feeds)

    check = checked(tmp_path, refuses, source)
    assert [bool(choice.source_reason) for choice in check.choices] == [False, True, True, True]
    assert judged(check).is_good


def test_a_source_that_draws_is_not_judged(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)

    def dropout(feeds: Mapping[str, Any]) -> list[Any]:
        return [values * (draw.random(values.shape) > 0.5) for values in network(feeds)]

    check = checked(tmp_path, right, dropout)
    assert check.repeats is False
    assert judged(check).is_unjudged


def test_a_source_that_is_another_one_each_time_is_not_judged(tmp_path: Path) -> None:
    check = checked(
        tmp_path,
        right,
        lambda feeds: network(feeds, epsilon=0.1),
        another=lambda feeds: network(feeds, epsilon=0.2),
    )
    assert (check.repeats, check.rebuilds) == (True, False)
    assert judged(check).is_unjudged


def test_a_source_that_fails_is_no_good_result(tmp_path: Path) -> None:
    def source(_: Mapping[str, Any]) -> list[Any]:
        raise RuntimeError("no-such-operator")

    check = checked(tmp_path, right, source)
    assert [choice.source_reason for choice in check.choices] == ["no-such-operator"] * 4
    assert judged(check).is_unjudged


def test_nan_of_the_file_alone_is_wrong(tmp_path: Path) -> None:
    def file(feeds: Mapping[str, Any]) -> list[Any]:
        scores, states = right(feeds)
        scores[0, 0] = np.nan
        return [scores, states]

    (fault,) = export_faults(replace(checked(tmp_path, file), spread=spread(140.0)), MODEL)
    assert (fault.kind, fault.outputs) == ("different", ("scores",))


def labelled(values: list[str]) -> Any:
    return lambda feeds: [network(feeds)[0], np.array(values, object)]


def test_labels_are_compared_as_they_are(tmp_path: Path) -> None:
    same = checked(tmp_path, labelled(["cat"] * 4), labelled(["cat"] * 4), batches=(4,))
    assert judged(same).is_good
    other = checked(tmp_path, labelled(["dog"] * 4), labelled(["cat"] * 4), batches=(4,))
    (fault,) = export_faults(other, MODEL)
    assert (fault.kind, fault.outputs) == ("different", ("states",))


def test_the_row_of_the_framework_answers_for_nothing(tmp_path: Path) -> None:
    result = result_of(checked(tmp_path, swapped))
    provider = replace(result.case.provider, role="framework")
    framework = replace(result, case=replace(result.case, provider=provider), flags=())
    assert judge_export(framework) is None
    assert "WRONG-EXPORT" not in [flag.name for flag in flags_of(framework)]


def test_a_source_that_differs_from_its_export_is_not_called_inaccurate() -> None:
    source = Source(path="/net.py", function="build", framework="torch")
    case = make_case()
    output = OutputAccuracy(name="y", kind="float", finite=True, sqnr_db=-10.0, compared=8)
    far = Accuracy(reference="net.onnx", samples=8, outputs=(output,))
    provider = Provider(alias="torch", name="PyTorch", role="framework")
    row = replace(
        make_result(),
        case=replace(case, provider=provider, model=replace(case.model, exported_from=source)),
        accuracy=far,
    )
    assert judge_accuracy(row).is_good
    # In another type, or compiled, it computes something else than its source does.
    cast = replace(row.case, provider=replace(provider, options={"autocast": "bfloat16"}))
    assert judge_accuracy(replace(row, case=cast)).is_bad
    compiled = replace(row.case, provider=replace(provider, alias="torch-compile"))
    assert judge_accuracy(replace(row, case=compiled)).is_bad


@pytest.mark.parametrize("reason", ["unavailable: torch can't be imported", ""])
def test_no_evidence_is_no_good_result(reason: str) -> None:
    assert judged(ExportCheck(reason=reason)).is_unjudged
    assert judged(ExportCheck(choices=(CheckedSizes(),))).is_unjudged
