import pytest

from pytest_ortbench.core.errors import (
    OrtbenchError,
    UsageError,
    did_you_mean,
    near_and_known,
    says,
    supply_step,
)


def test_a_message_has_place_rule_and_next_step() -> None:
    error = UsageError("'x' is not a size", place="--ort-dims", hint="Write e.g. seq:128")
    assert str(error) == "--ort-dims: 'x' is not a size. Write e.g. seq:128"
    assert isinstance(error, OrtbenchError)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("no such layer.\nat line 3", "pnnx says: 'no such layer'"),
        ("can't open 'x'", "pnnx says: \"can't open 'x'\""),
        (" \n", "pnnx gives no reason"),
    ],
)
def test_words_of_others_are_one_quoted_line_with_their_owner(text: str, quoted: str) -> None:
    assert says("pnnx", text) == quoted


def test_what_is_installed_and_does_not_load_is_installed_anew() -> None:
    supply = "Run: pip install it"
    assert supply_step(ModuleNotFoundError("No module named 'it'"), supply, "it") == supply
    for error in (ImportError("cannot import name 'x'"), OSError("lib.so: cannot open")):
        step = supply_step(error, supply, "it", "lib")
        assert step != supply
        assert step.endswith("--force-reinstall --no-deps it lib")
    # What the system lacks comes with no package.
    old = ImportError("/lib64/libm.so.6: version `GLIBC_2.29' not found (required by it.so)")
    assert "pip install" not in supply_step(old, supply, "it")
    # What lacks a name may be another package.
    other = ImportError("cannot import name 'x' from 'pytest'", name="pytest")
    assert supply_step(other, supply, "it").split()[-2:] == ["it", "pytest"]
    assert supply_step(other, supply, "pytest").split()[-2:] == ["--no-deps", "pytest"]
    # What names no package can't be installed by name.
    assert supply_step(ImportError("broken"), supply) == supply


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("CpuExecutionProvider", "Did you mean 'CPUExecutionProvider'?"),
        ("zzz", "Choose one of: CPUExecutionProvider, CUDAExecutionProvider"),
    ],
)
def test_the_nearest_word_is_offered(value: str, hint: str) -> None:
    assert did_you_mean(value, ["CUDAExecutionProvider", "CPUExecutionProvider"]) == hint


@pytest.mark.parametrize("value", ["native,fp16", "native fp16", "native; fp16"])
def test_several_words_where_one_is_taken_are_no_misspelling(value: str) -> None:
    known = ["fp16", "native"]
    for hint in (did_you_mean(value, known), near_and_known(value, known)):
        assert hint.endswith(", e.g. native")
    assert did_you_mean("native,fp61", known).startswith(("Choose", "Did"))


def test_without_any_word_it_says_so() -> None:
    assert did_you_mean("x", []) == "There is none to choose from"


def test_a_further_sentence_is_a_sentence_of_its_own() -> None:
    assert did_you_mean("fp61", ["fp16"], "Or leave it out") == (
        "Did you mean 'fp16'? Or leave it out"
    )
    assert (
        did_you_mean("zzz", ["fp16"], "Or leave it out")
        == "The only choice is 'fp16'. Or leave it out"
    )


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("strikt", "Did you mean 'strict'? If not, choose one of: report, strict"),
        ("zzz", "Choose one of: report, strict"),
    ],
)
def test_all_known_words_are_listed_once(value: str, hint: str) -> None:
    assert near_and_known(value, ["report", "strict"]) == hint


def test_of_many_known_words_a_few_are_named() -> None:
    words = [f"latency_p{number}" for number in range(10, 60)] + ["p50", "p90"]
    hint = did_you_mean("p42", words)
    assert hint.count(",") == 7
    assert "p50" in hint.replace(",", "").split()
    assert "44" in hint.split()
    few = did_you_mean("q", ["abc", "def"])
    assert few == "Choose one of: abc, def"
