"""Evidence that is missing, NaN, empty or cut short never makes an export good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.accuracy import OutputAccuracy, ReferenceSpread, SpreadTrial
from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.passes.export_check.facts import CheckedSizes, Confusion, ExportCheck
from pytest_ortbench.passes.export_check.numbers.evidence import differing_whole, left_out
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.rounding import inner_near_db
from pytest_ortbench.passes.export_check.numbers.verdict import judge_export
from pytest_ortbench.passes.export_check.report import check_sentences
from pytest_ortbench.worker.accuracy import Collected
from pytest_ortbench.worker.sample_file import Sample
from tests.passes.export_check.answered import checked, network, right
from tests.results_factory import make_case, make_engine_result, make_result

MODEL = replace(
    make_case().model,
    outputs=tuple(
        TensorInfo(name=name, type=kind, shape=None)
        for name, kind in (
            ("scores", "tensor(float)"),
            ("hidden", "tensor(float)"),
            ("label", "tensor(int64)"),
            ("step", "tensor(uint8)"),
        )
    ),
)
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(8, 10)).astype("float32")
NEAR = (X * (1 + 1e-7)).astype("float32")
NOISE = DRAW.normal(size=X.shape)
FAR = (X + 0.3 * NOISE).astype("float32")
NAN = np.full_like(X, np.nan)
LABELS = np.arange(8)


def figures(*pairs: tuple[Any, Any], names: tuple[str, ...] = ("scores",)) -> Any:
    """Figures of what a source and a file give: a pair of values for each output."""
    collected = Collected()
    sample = Sample(magnitude=1.0, feeds={}, outputs=[source for source, _ in pairs])
    collected.add(sample, [file for _, file in pairs], names)
    return collected.outputs()


def check_of(outputs: Any, **facts: Any) -> ExportCheck:
    choice = CheckedSizes(samples=8, outputs=outputs)
    return replace(
        ExportCheck(framework="torch", choices=(choice,), repeats=True, rebuilds=True), **facts
    )


def spread(db: float, *names: str, reason: str = "") -> ReferenceSpread:
    output = OutputAccuracy(name="scores", kind="float", finite=True, sqnr_db=db, compared=80)
    trials = tuple(SpreadTrial(name=name, samples=8, outputs=(output,)) for name in names)
    return ReferenceSpread(trials=trials, reason=reason)


def summary_of(check: ExportCheck) -> Summary:
    result = make_result(case=replace(make_case(), model=MODEL))
    return summarise(replace(result, export_check=check))


def judged(check: ExportCheck) -> Judgement:
    result = make_result(case=replace(make_case(), model=MODEL))
    judgement = judge_export(replace(result, export_check=check))
    assert judgement is not None
    return judgement


def limit_of(check: ExportCheck, text: str = "export_sqnr >= 110 dB") -> Judgement:
    (outcome,) = check_limits([parse_limit(text, place="")], summary_of(check))
    return outcome.judgement


ONE_NAN = X.copy()
ONE_NAN[0, 0] = np.nan


@pytest.mark.parametrize(
    ("source", "file"),
    [
        (NAN, X),
        (NAN, NAN),
        (-np.full_like(X, np.inf), -np.full_like(X, np.inf)),
        (ONE_NAN, X),
        (X[:0], X[:0]),
        (LABELS[:0], LABELS[:0]),
        (X[None, :0], X[None, :0]),
    ],
)
def test_what_could_not_be_compared_is_not_judged(source: Any, file: Any) -> None:
    check = check_of(figures((source, file)))
    assert judged(check).is_unjudged
    assert limit_of(check).is_unjudged
    assert "export_sqnr" not in summary_of(check).infinite


def test_an_output_that_was_never_compared_is_not_hidden_by_another_one() -> None:
    outputs = figures((X, X), (NAN, NAN), names=("scores", "hidden"))
    assert judged(check_of(outputs)).is_unjudged
    wrong = figures((X, FAR), (NAN, NAN), names=("scores", "hidden"))
    assert judged(check_of(wrong)).is_bad


def test_an_output_that_is_empty_at_some_sizes_only_is_said() -> None:
    check = check_of(figures((X, X)))
    other = CheckedSizes(sizes={"N": 2}, changed=("N",), samples=2, outputs=figures((X[:0], X[:0])))
    usual = replace(check.choices[0], sizes={"N": 1})
    check = replace(check, choices=(usual, other))
    assert judged(check).is_good
    assert len(left_out(check)) == 1


def test_what_the_figures_leave_out_is_said() -> None:
    note = "one set is left out"
    choice = CheckedSizes(samples=8, outputs=figures((X, X)), note=note)
    check = check_of((), choices=(choice,))
    assert left_out(check) == (note,)
    assert note in check_sentences(check, MODEL)


# A file that does not repeat itself.


def test_a_file_that_does_not_repeat_itself_is_excused_by_nothing() -> None:
    far = check_of(figures((X, FAR)))
    for db in (5.0, 12.0, 30.0, 59.0):
        dropout = replace(far, spread=spread(db, "again", "moved", "one-thread", "float64"))
        (fault,) = export_faults(dropout, MODEL)
        assert (fault.kind, fault.is_drawn) == ("different", True)
    # Near itself, and the source is far.
    (fault,) = export_faults(replace(far, spread=spread(140.0, "again", "float64")), MODEL)
    assert not fault.is_drawn


@pytest.mark.parametrize("db", [61.0, 90.0, 119.0])
def test_a_file_that_nearly_repeats_itself_is_not_judged(db: float) -> None:
    near = figures((X, X + 1e-4 * X.std() * np.sign(X)))
    seldom = check_of(near, spread=spread(db, "again", "moved", "float64"))
    assert judged(seldom).is_unjudged


def test_the_plain_repetition_says_nothing_of_rounding() -> None:
    output = figures((X, (X * (1 + 1e-5 * NOISE)).astype("float32")))
    assert 60 < output[0].sqnr_db < 110
    same = spread(125.0, "again")
    assert judged(check_of(output, spread=same)).is_bad
    moved = ReferenceSpread(trials=(*same.trials, *spread(110.0, "moved", "float64").trials))
    assert judged(check_of(output, spread=moved)).is_good


def test_a_file_that_turns_over_by_one_unit_in_its_inputs_can_not_be_judged() -> None:
    chaotic = ReferenceSpread(
        trials=(*spread(140.0, "again").trials, *spread(12.0, "moved", "float64").trials)
    )
    assert judged(check_of(figures((X, FAR)), spread=chaotic)).is_unjudged


def test_a_spread_that_failed_leaves_what_rounding_may_explain_open() -> None:
    lost = ReferenceSpread(reason="the worker was killed")
    between = figures((X, (X * (1 + 1e-4 * NOISE)).astype("float32")))
    assert judged(check_of(between, spread=lost)).is_unjudged
    assert judged(check_of(figures((X, FAR)), spread=lost)).is_bad
    assert judged(check_of(figures((X, NEAR)), spread=lost)).is_good


def test_a_file_that_nobody_ran_again_is_judged_by_its_floor_alone() -> None:
    between = figures((X, (X * (1 + 1e-4 * NOISE)).astype("float32")))
    assert judged(check_of(between)).is_unjudged
    assert judged(check_of(figures((X, FAR)))).is_bad
    assert judged(check_of(figures((X, NEAR)))).is_good


def test_inner_values_are_never_held_against_a_file_that_does_not_repeat_itself() -> None:
    check = check_of(figures((X, FAR)), spread=spread(-13.0, "again"))
    assert inner_near_db(check, MODEL) == 100
    assert inner_near_db(replace(check, spread=spread(-13.0, "moved")), MODEL) == 50


# Sets that one side refused.


REFUSED = "Add 'node_add': it does not fit"


def cut_after(count: int) -> Any:
    seen: list[int] = []

    def file(feeds: Mapping[str, Any]) -> list[Any]:
        seen.append(len(feeds["x"]))
        if seen.count(len(feeds["x"])) > count and len(feeds["x"]) == 4:
            raise ValueError(REFUSED)
        return right(feeds)

    return file


def test_a_set_that_the_file_alone_refuses_is_a_fault(tmp_path: Path) -> None:
    check = checked(tmp_path, cut_after(1), batches=(4,))
    assert (check.choices[0].samples, check.choices[0].source_reason) == (1, "")
    (fault,) = export_faults(check, MODEL)
    assert (fault.kind, fault.message) == ("refused", REFUSED)
    assert limit_of(check).is_unjudged


def test_a_set_that_is_refused_at_one_size_is_no_frozen_dimension(tmp_path: Path) -> None:
    check = checked(tmp_path, cut_after(1))
    assert [choice.samples for choice in check.choices] == [1, 2, 2, 2]
    (fault,) = export_faults(check, MODEL)
    assert (fault.kind, fault.dimension) == ("refused", "")


def test_wrong_outputs_are_not_excused_by_a_set_that_the_source_refuses(tmp_path: Path) -> None:
    asked: list[int] = []

    def source(feeds: Mapping[str, Any]) -> list[Any]:
        asked.append(1)
        if len(asked) == 2:
            raise ValueError("values are too large")
        return network(feeds, epsilon=0.1)

    check = checked(tmp_path, right, source, batches=(4,))
    assert (check.choices[0].samples, check.repeats, check.rebuilds) == (1, True, True)
    assert judged(check).is_bad
    asked.clear()
    near = checked(tmp_path, right, lambda feeds: source(feeds) and network(feeds), batches=(4,))
    assert judged(near).is_unjudged


def test_sizes_that_are_not_judged_are_none_at_which_a_file_is_right() -> None:
    hidden = CheckedSizes(sizes={"N": 4}, samples=8, outputs=figures((ONE_NAN, X)))
    wrong = CheckedSizes(sizes={"N": 1}, changed=("N",), samples=2, outputs=figures((X, FAR)))
    (fault,) = export_faults(check_of((), choices=(hidden, wrong)), MODEL)
    assert fault.kind == "different"
    right_one = replace(hidden, outputs=figures((X, X)))
    (fault,) = export_faults(check_of((), choices=(right_one, wrong)), MODEL)
    assert fault.kind == "frozen"


def test_a_set_that_both_refuse_is_not_judged(tmp_path: Path) -> None:
    check = checked(tmp_path, cut_after(1), cut_after(1), batches=(4,))
    assert check.choices[0].source_reason
    assert judged(check).is_unjudged


def test_other_sizes_that_the_source_refuses_are_said(tmp_path: Path) -> None:
    def source(feeds: Mapping[str, Any]) -> list[Any]:
        if len(feeds["x"]) != 4:
            raise ValueError("this network takes four")
        return network(feeds)

    check = checked(tmp_path, right, source)
    assert judged(check).is_good
    # One remark tells of all sizes.
    assert len(left_out(check)) == 1


def test_a_choice_without_an_answer_or_a_reason_is_not_judged() -> None:
    check = check_of(figures((X, X)))
    empty = CheckedSizes(sizes={"N": 2}, changed=("N",))
    assert judged(replace(check, choices=(*check.choices, empty))).is_unjudged
    assert judged(replace(check, choices=(CheckedSizes(), *check.choices))).is_unjudged


def test_what_was_interrupted_is_not_judged() -> None:
    assert judged(replace(check_of(figures((X, X))), interrupted=True)).is_unjudged


# Whole values.


@pytest.mark.parametrize("agreeing", [7, 4, 0])
def test_labels_that_differ_are_not_hidden_by_probabilities(agreeing: int) -> None:
    labels = np.where(agreeing > LABELS, LABELS, 99)
    outputs = figures((LABELS, labels), (X, NEAR), names=("label", "scores"))
    check = check_of(outputs)
    assert not limit_of(check).is_good
    summary = summary_of(check)
    assert "export_sqnr" not in {**summary.quantities, **dict.fromkeys(summary.infinite)}
    assert differing_whole(check, MODEL) == {"label": (agreeing, 8)}
    assert "'label'" in " ".join(check_sentences(check, MODEL))
    assert judged(check).is_bad is (agreeing < 7)


def test_labels_alone_have_no_ratio() -> None:
    same = check_of(figures((LABELS, LABELS), names=("label",)))
    assert judged(same).is_good
    assert limit_of(same).is_unjudged
    other = check_of(figures((LABELS, LABELS + 1), names=("label",)))
    assert judged(other).is_bad
    assert limit_of(other).is_unjudged


def test_a_step_of_a_quantised_output_is_rounding() -> None:
    step = (LABELS.astype("uint8"), (LABELS + 1).astype("uint8"))
    check = check_of(figures(step, (X, NEAR), names=("step", "scores")))
    assert judged(check).is_good
    assert limit_of(check).is_good
    assert not summary_of(check).infinite


def test_an_exact_export_keeps_every_limit_from_below() -> None:
    check = check_of(figures((X, X), (LABELS, LABELS), names=("scores", "label")))
    assert summary_of(check).infinite.keys() == {"export_sqnr"}
    assert limit_of(check).is_good
    assert limit_of(check, "export_sqnr <= 200 dB").is_bad


def test_a_limit_on_the_export_says_nothing_of_the_framework() -> None:
    limit = parse_limit("export_sqnr >= 110 dB", place="")
    framework = make_engine_result(alias="torch", title="PyTorch", role="framework")
    assert check_limits([limit], summarise(framework)) == []
    (engine,) = check_limits([limit], summarise(make_engine_result()))
    assert engine.judgement.is_unjudged


# Outputs that are another one.


def test_two_outputs_that_are_one_value_are_not_confused(tmp_path: Path) -> None:
    def source(feeds: Mapping[str, Any]) -> list[Any]:
        return [network(feeds)[1]] * 2

    def file(feeds: Mapping[str, Any]) -> list[Any]:
        return [network(feeds, epsilon=3e-6, kind="float32")[1]] * 2

    assert checked(tmp_path, file, source).confusions == ()


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_an_output_that_is_not_finite_is_like_none(tmp_path: Path, value: float) -> None:
    def masked(feeds: Mapping[str, Any], answer: Any) -> list[Any]:
        states = answer(feeds)[1]
        return [states, np.full_like(states, value)]

    check = checked(
        tmp_path,
        lambda feeds: masked(feeds, lambda fed: network(fed, epsilon=1e-3)),
        lambda feeds: masked(feeds, network),
    )
    assert check.confusions == ()


def test_only_a_wrong_output_is_another_one() -> None:
    outputs = figures((X, NEAR), (X, NEAR), names=("scores", "hidden"))
    confusion = Confusion(output="scores", source_output="hidden")
    assert judged(check_of(outputs, confusions=(confusion,))).is_good


def test_an_output_that_the_source_does_not_return_is_wrong(tmp_path: Path) -> None:
    check = checked(tmp_path, network, lambda feeds: network(feeds)[:1])
    (fault,) = export_faults(check, MODEL)
    assert (fault.kind, fault.outputs) == ("different", ("states",))
    assert left_out(check)


# A source that is asked again.


def test_a_source_that_fails_when_it_is_asked_again_is_not_judged(tmp_path: Path) -> None:
    asked: list[int] = []

    def once(feeds: Mapping[str, Any]) -> list[Any]:
        asked.append(1)
        if len(asked) > 2:
            raise RuntimeError("only once")
        return network(feeds, epsilon=0.1)

    check = checked(tmp_path, right, once, batches=(4,))
    assert (check.repeats, check.again_reason) == (None, "only once")
    assert judged(check).is_unjudged


def test_a_source_that_can_not_be_loaded_again_is_not_judged(tmp_path: Path) -> None:
    def fails(_: Mapping[str, Any]) -> list[Any]:
        raise RuntimeError("no memory")

    wrong = checked(tmp_path, right, lambda feeds: network(feeds, epsilon=0.1), another=fails)
    assert (wrong.repeats, wrong.rebuilds) == (True, None)
    assert judged(wrong).is_unjudged


def test_a_source_whose_nan_come_and_go_is_not_judged(tmp_path: Path) -> None:
    asked: list[int] = []

    def flickers(feeds: Mapping[str, Any]) -> list[Any]:
        asked.append(1)
        scores, states = network(feeds)
        return [scores if len(asked) > 2 else np.full_like(scores, np.nan), states]

    check = checked(tmp_path, right, flickers, batches=(4,))
    assert check.repeats is False
    assert judged(check).is_unjudged
