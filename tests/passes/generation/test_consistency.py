"""A decoder that is fed wrongly, or is wrong with a cache, is refused before it is timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime
import pytest

from pytest_ortbench.core.case import Case, InputSpec, Provider
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.generation import Consistency
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.worker.generation.consistency import (
    LEAST_DB,
    consistency,
    consistency_at_end,
    require_consistent,
    worst_median,
)
from pytest_ortbench.worker.generation.decoding import SessionDecoder
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from pytest_ortbench.worker.generation.requests import Prompts
from pytest_ortbench.worker.generation.scoring import Scorer, SessionScorer, at_once, sqnr_db
from pytest_ortbench.worker.generation.step_inputs import StepInputs
from tests.passes.generation.generated import make_generating_case
from tests.passes.generation.graphs import (
    COUNTS_FROM_ONE,
    LONGER_MASK,
    VOCABULARY,
    tiny_decoder,
)
from tests.worker.decoder_cases import decoder_case

CPU = Provider(alias="cpu", name="CPUExecutionProvider")


class HiddenNewest(StepInputs):
    """Hides the newest token once there is a cache."""

    def of(self, ids: Any, *, before: int) -> dict[str, Any]:
        given = super().of(ids, before=before)
        if before:
            given["attention_mask"][:, -1] = 0
        return given


class LateCount(StepInputs):
    """Counts positions one further once there is a cache."""

    def of(self, ids: Any, *, before: int) -> dict[str, Any]:
        given = super().of(ids, before=before)
        if before:
            given["position_ids"] = given["position_ids"] + 1
        return given


class ShortMask(SessionDecoder):
    """Is fed with a mask that is too short."""

    def __init__(self, session: Any, decoder: Any, provider: Provider, **sizes: Any) -> None:
        super().__init__(session, decoder, provider, **sizes)
        self._inputs = HiddenNewest(session, decoder, batch=sizes["batch"])


class LatePositions(SessionDecoder):
    """Is fed with positions that are off by one."""

    def __init__(self, session: Any, decoder: Any, provider: Provider, **sizes: Any) -> None:
        super().__init__(session, decoder, provider, **sizes)
        self._inputs = LateCount(session, decoder, batch=sizes["batch"])


class ShiftedCache(SessionDecoder):
    """Loses the first token of the cache, and pads its end."""

    def _bind_inputs(self, ids: Any) -> None:
        if self._past:
            for index, value in enumerate(self._cache):
                rolled = np.roll(value.numpy(), -1, axis=2)
                rolled[:, :, -1] = 0
                self._cache[index] = self._ort.OrtValue.ortvalue_from_numpy(rolled)
        super()._bind_inputs(ids)


def scorer_of(
    path: Path, kind: type[SessionDecoder] = SessionDecoder, *, batch: int = 2, length: int = 64
) -> SessionScorer:
    """A scorer on the CPU."""
    session = onnxruntime.InferenceSession(str(path), providers=[CPU.name])
    decoder = read_model(path, name="m", source="file").decoder
    assert decoder is not None
    return SessionScorer(kind(session, decoder, CPU, batch=batch, length=length))


def case_of(*, batch: int = 2) -> Case:
    """A case that generates with any tiny decoder."""
    case = make_generating_case(batch=batch, prompt=16, new=8)
    assert case.model.decoder is not None
    decoder = replace(case.model.decoder, vocabulary=VOCABULARY)
    hint = ValueHint(kind="integers", low=0, high=VOCABULARY - 1)
    ids = InputSpec(name="input_ids", type="tensor(int64)", shape=(batch, 16), hint=hint)
    return replace(case, model=replace(case.model, decoder=decoder), inputs=(ids,))


@pytest.mark.live
@pytest.mark.parametrize("made", [{}, {"half": True}, {"bits": 4}])
def test_a_decoder_that_is_fed_rightly_scores_alike_both_ways(
    tmp_path: Path, made: dict[str, Any]
) -> None:
    scorer = scorer_of(tiny_decoder(tmp_path / "m.onnx", **made))
    ids = Prompts(case_of(), seed=1).draw(14)
    seen = consistency(scorer, ids, 8, LEAST_DB["fp16" if made.get("half") else "fp32"])
    assert seen.after == tuple(range(8, 15))
    assert not seen.is_wrong
    assert seen.median_db is not None
    assert seen.median_db > seen.least_db
    assert seen.own_db is None


@pytest.mark.live
@pytest.mark.parametrize("kind", [ShortMask, LatePositions, ShiftedCache])
def test_each_wrong_feed_is_refused(tmp_path: Path, kind: type[SessionDecoder]) -> None:
    scorer = scorer_of(tiny_decoder(tmp_path / "m.onnx"), kind)
    with pytest.raises(WorkerError) as refusal:
        require_consistent(scorer, case_of())
    assert (refusal.value.failure.kind, refusal.value.failure.phase) == ("error", "first")


@pytest.mark.live
@pytest.mark.parametrize("expects", [COUNTS_FROM_ONE, LONGER_MASK])
@pytest.mark.parametrize("bits", [0, 4])
def test_a_file_with_a_convention_of_its_own_is_refused(
    tmp_path: Path, expects: str, bits: int
) -> None:
    scorer = scorer_of(tiny_decoder(tmp_path / "m.onnx", expects=expects, bits=bits))
    with pytest.raises(WorkerError):
        require_consistent(scorer, case_of())


def test_a_token_without_numbers_hides_no_wrong_one() -> None:
    """One of six is NaN on both sides, and all others are noise."""

    right, other = np.random.default_rng(0).standard_normal((2, 1, 6, VOCABULARY))
    right[:, 1] = other[:, 1] = np.nan
    assert np.isnan(sqnr_db(right, other)).tolist() == [[False, True, *[False] * 4]]
    worst = worst_median(sqnr_db(right, other))
    assert worst is not None
    assert worst < 0
    assert worst_median(np.full((2, 3), np.nan)) is None


@pytest.mark.live
def test_scores_of_one_run_are_those_of_its_beginnings(tmp_path: Path) -> None:
    """An engine that gives the last scores only is asked once for each length."""

    class Last(SessionScorer):
        def every(self, ids: Any) -> None:
            del ids

    path = tiny_decoder(tmp_path / "m.onnx")
    ids = Prompts(case_of(), seed=1).draw(12)
    every = at_once(scorer_of(path), ids, (4, 8, 12))
    alone = at_once(Last(scorer_of(path).decoder), ids, (4, 8, 12))
    assert every.shape == alone.shape == (2, 3, VOCABULARY)
    assert sqnr_db(every, alone).min() > 100


def test_a_ratio_knows_no_offset_and_no_missing_number() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [np.nan, 0, 0], [np.nan, 0, 0]])
    other = np.array([[6.0, 7.0, 8.0], [1.0, 2.0, 3.2], [0.0, 0, 0], [0, np.inf, 0]])
    exact, near, broken, unknown = sqnr_db(scores, other)
    assert exact == 300
    # Signal 2; the difference (0, 0, 0.2) less its mean has the power 0.026667.
    assert near == pytest.approx(10 * np.log10(2 / 0.0266667), abs=1e-4)
    assert broken == -200
    assert np.isnan(unknown)


def test_a_coarse_file_may_be_as_far_from_itself_as_it_is_by_its_own_rounding() -> None:
    def seen(median: float | None, own: float | None) -> Consistency:
        return Consistency(
            after=(8, 9), sqnr_db=(300, median or -200), median_db=median, own_db=own, least_db=25
        )

    assert not seen(26, None).is_wrong
    assert not seen(14, 17).is_wrong
    assert seen(14, 31).is_wrong
    assert seen(14, None).is_wrong
    nothing = seen(None, None)
    assert (nothing.is_known, nothing.is_wrong) == (False, False)


@pytest.mark.live
@pytest.mark.parametrize(
    ("prompt", "new", "is_wrong"),
    [(200, 8, False), (250, 16, True), (300, 8, False)],
    ids=["before", "across", "behind"],
)
def test_a_request_that_crosses_the_switch_of_two_tables_is_seen_at_its_end(
    tmp_path: Path, prompt: int, new: int, is_wrong: bool
) -> None:
    """Keys that the first table turned stay so: 256 tokens are what it serves."""
    case = decoder_case(tmp_path, model="llm_long", prompt=prompt, new=new)
    measured = GeneratingCase(case, lambda _: None)
    measured.open()
    seen = consistency_at_end(measured.scorer(prompt + new - 1), case)
    assert seen.after[-1] == prompt + new - 1
    assert (seen.is_known, seen.is_wrong) == (True, is_wrong)


def test_scores_of_too_many_tokens_are_not_compared_and_not_good() -> None:
    case = case_of()
    assert case.model.decoder is not None
    decoder = replace(case.model.decoder, vocabulary=10**9)
    seen = consistency_at_end(
        cast(Scorer, None), replace(case, model=replace(case.model, decoder=decoder))
    )
    assert seen.reason
    assert (seen.is_known, seen.is_wrong) == (False, False)
