"""A graph that refuses its default sizes is asked again at others, and what was tried is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import AxisRole, TensorInfo
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.core.recipe import Conversion, Recipe
from pytest_ortbench.execution.default_retry import DefaultRetry
from pytest_ortbench.planning.default_sizes import default_size
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.next_sizes import MOST_TRIES, next_sizes
from tests.results_factory import make_case

Shapes = dict[str, tuple[int, ...]]


@dataclass
class _Picky:
    """A launcher whose model takes some shapes only."""

    takes: Callable[[Shapes], bool]
    asked: list[Shapes] = field(default_factory=list)

    def open(self, case: Case, *, worker: int, deadline: float) -> _Picky:
        assert (worker, deadline > 0) == (0, True)
        self.asked.append({spec.name: spec.shape for spec in case.inputs})
        return self

    def ask(self, _question: object) -> None:
        if not self.takes(self.asked[-1]):
            raise WorkerError(_refusal())

    def close(self) -> None:
        """Nothing is open."""


def _refusal(kind: str = "error", phase: str = "first") -> Failure:
    return Failure(kind=kind, phase=phase, message="no such size")


def _case(dims: dict[str, int] | None = None, **inputs: tuple[int | str | None, ...]) -> Case:
    kinds = {"ids": "tensor(int64)"}
    infos = tuple(
        TensorInfo(name=name, type=kinds.get(name, "tensor(float)"), shape=shape)
        for name, shape in inputs.items()
    )
    case = make_case()
    model = replace(case.model, inputs=infos)
    specs = resolve_inputs(model, batch=None, dims=dims or {})
    return replace(case, model=model, inputs=specs, dims=dims or {})


def _tried(
    case: Case, takes: Callable[[Shapes], bool], failure: Failure | None = None
) -> tuple[Case | CaseResult, list[Shapes], DefaultRetry]:
    launcher: Any = _Picky(takes)
    retry = DefaultRetry(launcher=launcher)
    failure = failure or _refusal()
    found = retry.other(CaseResult(case=case, status=failure.kind, failure=failure))
    return found, launcher.asked, retry


def test_a_length_that_is_too_short_is_made_longer() -> None:
    case = _case(x=("N", None))
    found, asked, _ = _tried(case, lambda shapes: shapes["x"][1] >= 400)
    assert isinstance(found, Case)
    assert (found.inputs[0].shape, len(asked)) == ((1, 512), 1)
    (size,) = [size for size in found.inputs[0].resolved if size.symbol == "x_dim_1"]
    assert (size.origin, size.how) == (
        "default",
        "default: sequence length, since 128 was refused",
    )
    assert found.case_id == case.case_id


def test_a_sound_is_made_as_long_as_its_windows_fill() -> None:
    role = AxisRole(axis=1, role="unknown", samples=True, least=192, hop=128, limit_why="Conv 'y'")
    case = _case(x=("N", "T"))
    model = replace(case.model, inputs=(replace(case.model.inputs[0], roles=(role,)),))
    case = replace(case, model=model, inputs=resolve_inputs(model, batch=None, dims={}))
    found, asked, _ = _tried(case, lambda shapes: shapes["x"][1] < 700)
    assert isinstance(found, Case)
    assert found.inputs[0].shape == (1, 576)
    assert [shapes["x"][1] for shapes in asked] == [32_064, 576]
    how = found.inputs[0].resolved[-1].how
    assert "since 16000 was refused" in how
    assert "windows 128 apart" in how


def test_height_and_width_change_together() -> None:
    case = _case(x=("N", 3, "height", "width"))
    found, _, _ = _tried(case, lambda shapes: shapes["x"][2] % 128 == 0)
    assert isinstance(found, Case)
    assert found.inputs[0].shape == (1, 3, 256, 256)


def test_tokens_become_fewer_first() -> None:
    found, _, _ = _tried(_case(ids=("N", "seq")), lambda shapes: shapes["ids"][1] <= 77)
    assert isinstance(found, Case)
    assert found.inputs[0].shape == (1, 64)


def test_what_takes_too_much_memory_becomes_smaller() -> None:
    failure = _refusal("out_of_memory")
    found, _, _ = _tried(
        _case(x=("N", 3, "height", "width")), lambda shapes: shapes["x"][2] < 100, failure
    )
    assert isinstance(found, Case)
    assert found.inputs[0].shape == (1, 3, 56, 56)


def test_sizes_of_different_things_take_turns() -> None:
    case = _case(x=("N", 3, "height", "width"), ids=("N", "seq"))
    found, asked, _ = _tried(case, lambda shapes: shapes["ids"][1] == 64)
    assert isinstance(found, Case)
    assert [shapes["ids"] for shapes in asked] == [(1, 128), (1, 64)]
    assert found.inputs[0].shape == (1, 3, 224, 224)


def test_after_five_tries_the_failure_says_what_was_tried_and_how_to_set_it() -> None:
    found, asked, _ = _tried(_case(x=("N", None)), lambda _: False)
    assert isinstance(found, CaseResult)
    assert len(asked) == MOST_TRIES
    assert found.failure is not None
    assert found.failure.message == "no such size"
    assert "x_dim_1 128, 512, 64, 1024, 16000, 256" in found.failure.hint
    assert "--ort-dims=x_dim_1:SIZE" in found.failure.hint


@pytest.mark.parametrize(
    ("case", "failure"),
    [
        (_case(x=(1, 3, 32, 32)), _refusal()),
        (_case({"seq": 9}, x=("N", "seq")), _refusal()),
        (_case(x=("N", "seq")), _refusal(phase="session")),
        (_case(x=("N", "seq")), _refusal("crash")),
        (_case(x=("N", "seq")), _refusal("timeout")),
    ],
)
def test_what_the_user_named_or_no_size_can_mend_is_left_alone(
    case: Case, failure: Failure
) -> None:
    found, asked, _ = _tried(case, lambda _: True, failure)
    assert isinstance(found, CaseResult)
    assert (found.failure, asked) == (failure, [])


def test_the_next_case_of_a_model_starts_with_what_it_took() -> None:
    case = _case(x=("N", None))
    found, _, retry = _tried(case, lambda shapes: shapes["x"][1] >= 400)
    assert isinstance(found, Case)
    assert retry.known(case).inputs == found.inputs
    other = replace(case, model=replace(case.model, path="elsewhere.onnx"))
    assert retry.known(other) == other


def test_other_float_types_keep_theirs() -> None:
    case = _case(x=("N", None))
    half = replace(case, inputs=tuple(spec.typed("tensor(float16)") for spec in case.inputs))
    found, _, _ = _tried(half, lambda _: True)
    assert isinstance(found, Case)
    assert found.inputs[0].type == "tensor(float16)"


# What is calibrated, and the sides of a gate.


@dataclass
class _Calibrated:
    """Makes variants of a model that takes some shapes only."""

    takes: Callable[[Shapes], bool]
    fails: bool = False
    fed: list[Shapes] = field(default_factory=list)

    def prepare(self, case: Case, conversion: Conversion) -> Case:
        self.fed.append({spec.name: spec.shape for spec in conversion.inputs})
        if self.fails or not self.takes(self.fed[-1]):
            raise WorkerError(_refusal("unsupported", "convert"))
        return replace(case, variant=replace(case.variant, path="made.onnx"))


def _planned(case: Case, base: str = "int8-static", **changed: Any) -> Planned:
    defaults = resolve_inputs(case.model, batch=None, dims={})
    conversion = Conversion(
        recipe=Recipe(name=base, base=base),
        source=case.model.path,
        digest="",
        size_bytes=1,
        own_precision="fp32",
        inputs=defaults,
    )
    return Planned(case=case, conversion=replace(conversion, **changed))


def _long(shapes: Shapes) -> bool:
    return shapes["x"][1] >= 400


def _retry(takes: Callable[[Shapes], bool]) -> tuple[DefaultRetry, list[Shapes]]:
    launcher: Any = _Picky(takes)
    return DefaultRetry(launcher=launcher), launcher.asked


def test_a_variant_is_calibrated_and_measured_at_sizes_that_its_model_takes() -> None:
    retry, asked = _retry(_long)
    variants: Any = _Calibrated(_long)
    planned = _planned(_case(x=("N", None)))
    case = retry.prepare(planned, variants)
    assert (case.variant.path, case.inputs[0].shape) == ("made.onnx", (1, 512))
    assert [shapes["x"] for shapes in variants.fed] == [(1, 128), (1, 512)]
    assert [shapes["x"] for shapes in asked] == [(1, 128), (1, 512)]
    retry.prepare(planned, variants)
    assert variants.fed[2:] == [{"x": (1, 512)}]


def test_a_variant_is_calibrated_at_the_sizes_that_the_user_set_for_its_case() -> None:
    retry, _ = _retry(_long)
    variants: Any = _Calibrated(_long)
    case = retry.prepare(_planned(_case({"seq": 480}, x=("N", "seq"))), variants)
    assert case.inputs[0].shape == (1, 480)
    assert [shapes["x"] for shapes in variants.fed] == [(1, 128), (1, 480)]


@pytest.mark.parametrize(
    ("takes", "base", "tries"), [(lambda _: True, "int8-static", 1), (_long, "fp16", 0)]
)
def test_a_conversion_that_no_size_mends_fails_as_it_did(
    takes: Callable[[Shapes], bool], base: str, tries: int
) -> None:
    retry, asked = _retry(takes)
    variants: Any = _Calibrated(takes, fails=True)
    with pytest.raises(WorkerError) as failed:
        retry.prepare(_planned(_case(x=("N", None)), base), variants)
    assert failed.value.failure.phase == "convert"
    assert (len(variants.fed), len(asked)) == (1, tries)


def test_a_case_is_asked_once_before_something_else_than_a_run_takes_it() -> None:
    retry, asked = _retry(_long)
    case = _case(x=("N", None))
    assert [retry.fitting(case).inputs[0].shape for _ in range(2)] == [(1, 512)] * 2
    retry, asked = _retry(lambda _: True)
    assert [retry.fitting(case) for _ in range(2)] == [case] * 2
    assert len(asked) == 1


def test_two_sides_of_a_gate_meet_at_sizes_that_both_take() -> None:
    retry, _ = _retry(_long)
    case = _case(x=("N", None))
    other = replace(case, model=replace(case.model, path="old.onnx"))
    pair = retry.together(other, case, _refusal())
    assert pair is not None
    assert [side.inputs[0].shape for side in pair] == [(1, 512)] * 2
    assert retry.known(other).inputs[0].shape == (1, 512)
    assert retry.together(other, case, _refusal("crash")) is None
    assert _retry(lambda _: False)[0].together(other, case, _refusal()) is None


def test_one_model_follows_another_unless_it_took_sizes_itself() -> None:
    case = _case(x=("N", None))
    _, _, retry = _tried(case, _long)
    assert retry.follow("old.onnx", case.model.path)
    assert not retry.follow("old.onnx", case.model.path)
    assert not retry.follow(case.model.path, "other.onnx")


def test_nothing_is_tried_where_no_size_is_a_default() -> None:
    assert list(next_sizes(_case(x=(1, 3)))) == []


def test_of_rows_that_are_no_batch_a_single_one_is_tried_first() -> None:
    role = AxisRole(axis=0, role="mixed", why="ReduceSum 'y'")
    case = _case(x=("M", 4))
    (info,) = case.model.inputs
    model = replace(case.model, inputs=(replace(info, roles=(role,)),))
    specs = resolve_inputs(model, batch=None, dims={})
    assert specs[0].shape == (128, 4)
    tried = list(next_sizes(replace(case, model=model, inputs=specs)))
    assert tried[0] == {"M": 1}
    assert len(tried) == MOST_TRIES


def test_a_batch_that_is_added_up_is_one_by_its_name() -> None:
    assert [default_size(name, ())[0] for name in ("b", "bs", "batch")] == [1, 1, 1]
