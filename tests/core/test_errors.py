import pytest

from pytest_ortbench.core.errors import OrtbenchError, UsageError, did_you_mean


def test_a_message_has_place_rule_and_next_step() -> None:
    error = UsageError("'x' is not a size", place="--ort-dims", hint="Write e.g. seq:128")
    assert str(error) == "--ort-dims: 'x' is not a size. Write e.g. seq:128"
    assert isinstance(error, OrtbenchError)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("CpuExecutionProvider", "Did you mean 'CPUExecutionProvider'?"),
        ("zzz", "Known: CPUExecutionProvider, CUDAExecutionProvider"),
    ],
)
def test_the_nearest_word_is_offered(value: str, hint: str) -> None:
    assert did_you_mean(value, ["CUDAExecutionProvider", "CPUExecutionProvider"]) == hint


def test_without_any_word_it_says_so() -> None:
    assert did_you_mean("x", []) == "None is known"
