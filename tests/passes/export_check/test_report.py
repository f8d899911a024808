"""How near an export is, in words."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.passes.export_check.facts import CheckedSizes, ExportCheck
from pytest_ortbench.passes.export_check.numbers.words import ratio_words
from pytest_ortbench.passes.export_check.report import check_sentences, export_lines
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_case, make_result, make_run

EXACT = OutputAccuracy(
    name="scores", kind="float", finite=True, max_abs=0.0, exact=True, compared=80
)
SAME = OutputAccuracy(
    name="label", kind="integer", finite=True, exact=True, agree=8, rows=8, compared=8
)
MODEL = replace(
    make_case().model,
    outputs=(
        TensorInfo(name="scores", type="tensor(float)", shape=None),
        TensorInfo(name="label", type="tensor(int64)", shape=None),
    ),
)


def near(db: float) -> OutputAccuracy:
    return replace(EXACT, exact=False, max_abs=1.0, sqnr_db=db)


def check_of(*outputs: OutputAccuracy, note: str = "") -> ExportCheck:
    choice = CheckedSizes(sizes={"N": 1}, samples=8, outputs=outputs, note=note)
    return ExportCheck(
        framework="torch", version="2", choices=(choice,), repeats=True, rebuilds=True
    )


def first(*outputs: OutputAccuracy, **model: object) -> str:
    return check_sentences(check_of(*outputs), replace(MODEL, **model))[0].split(" against ")[0]


def test_the_word_exact_is_for_what_is_near() -> None:
    lenient = {"op_types": {"MatMulNBits": 1}}
    assert first(EXACT, SAME) == "exact"
    assert first(near(139.0), SAME) == "exact to 139 dB"
    assert first(near(105.0)) == "agrees to 105 dB"
    assert first(near(14.0), **lenient) == "agrees to 14.0 dB"
    assert ratio_words(-0.00001) == "0 dB"
    assert first(SAME) == "all values equal those of the source"


def test_labels_that_differ_stand_beside_the_ratio() -> None:
    flipped = replace(SAME, exact=False, agree=7)
    assert first(flipped, near(139.0)) == (
        "agrees to 139 dB; 7 of 8 values of 'label' are the source's"
    )
    assert first(EXACT, flipped) == "7 of 8 values of 'label' are the source's"


def test_a_remark_is_told_once_with_its_sizes_and_many_are_counted() -> None:
    usual = check_of(near(139.0)).choices[0]
    others = [
        replace(usual, sizes={"N": size}, changed=("N",), note=note)
        for size, note in ((2, "one is left out"), (3, "one is left out"), (4, "two are"))
    ]
    many = [replace(others[0], sizes={"N": size}, note=f"{size} are") for size in range(5, 10)]
    check = replace(check_of(), choices=(usual, *others))
    assert check_sentences(check, MODEL)[1:] == [
        "one is left out at N 2, N 3",
        "two are at N 4",
    ]
    check = replace(check, choices=(usual, *others, *many))
    assert check_sentences(check, MODEL)[-1] == "and 3 remarks more"


def test_sources_whose_files_are_equal_are_told_one_by_one() -> None:
    check = check_of(near(139.0))
    cases = [
        replace(make_case(), model=replace(MODEL, name=name, digest="d")) for name in ("a", "b")
    ]
    results = [replace(make_result(case=case), export_check=check) for case in cases]
    lines = export_lines(shown_run(make_run(results)))
    assert [line.partition(":")[0] for line in lines] == ["", "export of a", "export of b"]


def test_a_difference_that_nobody_looked_into_is_not_judged() -> None:
    between = check_of(near(90.0))
    assert check_sentences(between, MODEL)[0].startswith("not judged: ")
