"""Perplexity of a text: windows, figures with their intervals, and what it says of a case."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pytest_ortbench.analysis.inaccuracy import judge_accuracy
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.passes.generation.facts import TextScore
from pytest_ortbench.passes.generation.numbers.perplexity import judge_text, nats_interval
from pytest_ortbench.passes.generation.planning import (
    TEXT_TOKENS,
    WINDOW,
    check_text,
    windows_of_text,
)
from pytest_ortbench.passes.generation.worker.text import nats_of_window
from pytest_ortbench.planning.no_decoder import why_no_decoder
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.schema.meaning import faults_of
from tests.generation.folders import TINY, write_folder
from tests.passes.generation.test_quality import ALIKE, CHECK, TableScorer, result_of
from tests.results_factory import make_model

DECODER = Decoder(ids="ids", logits="logits", vocabulary=TINY.vocabulary, context=TINY.context)


def score(ratio: float, *, windows: int = 8, spread: float = 0.0, known: float = 4.0) -> TextScore:
    """A text of which the reference foresees each token by so many nats better than chance."""
    right = math.log(1000) - known
    nats = [100 * (right + math.log(ratio) + spread * (-1) ** window) for window in range(windows)]
    return TextScore(
        tokens=(100,) * windows,
        nats=tuple(nats),
        reference_nats=(100 * right,) * windows,
        vocabulary=1000,
    )


def test_perplexity_is_e_to_the_mean_over_all_tokens() -> None:
    text = TextScore(
        tokens=(100, 50), nats=(200.0, 250.0), reference_nats=(190.0, 245.0), vocabulary=1000
    )
    quantities = summarise(result_of(replace(CHECK, text=text))).quantities
    assert quantities["perplexity"].value == pytest.approx(math.exp(3))
    assert quantities["perplexity_ratio"].value == pytest.approx(math.exp(0.1))
    # Two windows say nothing of others.
    assert quantities["perplexity"].low is None


def test_the_ratio_is_known_better_than_either_perplexity() -> None:
    """Windows differ much from each other, and both sides alike."""
    nats = [100.0 * (2 + window) for window in range(8)]
    text = TextScore(
        tokens=(100,) * 8,
        nats=tuple(value + 10 for value in nats),
        reference_nats=tuple(nats),
        vocabulary=100_000,
    )
    quantities = summarise(result_of(replace(CHECK, text=text))).quantities
    perplexity, ratio = quantities["perplexity"], quantities["perplexity_ratio"]
    assert perplexity.low is not None
    assert perplexity.high is not None
    assert perplexity.high > 3 * perplexity.low
    assert (ratio.low, ratio.high) == (pytest.approx(ratio.value), pytest.approx(ratio.value))


def test_without_a_text_or_a_reference_that_is_said() -> None:
    missing = summarise(result_of(CHECK)).missing
    assert {"perplexity", "perplexity_ratio"} <= set(missing)
    alone = replace(score(1.1), reference_nats=())
    summary = summarise(result_of(replace(CHECK, text=alone)))
    assert "perplexity" in summary.quantities
    assert "perplexity_ratio" in summary.missing


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (score(1.05), "good"),
        (score(0.98), "good"),
        (score(2.0), "bad"),
        (score(1e200), "bad"),
        (score(1.25, spread=0.5), "not judged"),
        (score(1.05, windows=3), "not judged"),
        (score(2.0, known=0.2), "not judged"),
        (replace(score(1.0), reference_nats=()), "not judged"),
        (TextScore(reason="logits hold NaN or infinity"), "not judged"),
        (None, "not judged"),
    ],
)
def test_a_text_judges_where_it_can(text: TextScore | None, outcome: str) -> None:
    assert judge_text(text).outcome.value == outcome


@pytest.mark.parametrize(
    ("ratio", "known", "sqnr_db", "is_bad"),
    [
        (1.05, 4.0, 4.0, False),  # foreseen as well as ever, whatever the decibels
        (3.0, 4.0, 24.0, True),  # nonsense, whatever the decibels
        (3.0, 0.1, 24.0, False),  # the reference itself foresees nothing: decibels decide
        (1.0, 0.1, 4.0, True),
    ],
)
def test_a_text_goes_before_decibels(
    ratio: float, known: float, sqnr_db: float, is_bad: bool
) -> None:
    check = replace(CHECK, text=score(ratio, known=known), likeness=replace(ALIKE, sqnr_db=sqnr_db))
    assert judge_accuracy(result_of(check)).is_bad is is_bad


def test_the_interval_holds_the_value() -> None:
    assert nats_interval((1.0, 1.0, 1.0), (1, 1, 1)) is None
    ends = nats_interval((10.0, 20.0, 30.0, 40.0, 50.0), (10,) * 5)
    assert ends is not None
    assert ends[0] < 3 < ends[1]
    assert ends[0] >= 1
    assert ends[1] <= 5


def test_facts_of_a_text_that_contradict_each_other_are_seen() -> None:
    sound = result_of(replace(CHECK, text=score(1.1)))
    assert not list(faults_of(sound))
    for wrong in (
        replace(score(1.1), nats=(1.0,)),
        replace(score(1.1), reference_nats=(1.0,)),
        replace(score(1.1), vocabulary=0),
        replace(score(1.1), nats=(-1.0,) * 8),
    ):
        assert list(faults_of(replace(sound, generation=replace(CHECK, text=wrong))))


def test_a_token_is_worth_the_logarithm_of_its_probability() -> None:
    table = np.log(np.array([[0.5, 0.5, 0], [0.25, 0.25, 0.5], [1, 0, 0]]) + 1e-300)
    scorer: Any = TableScorer(table)
    # After 0 comes 1, after 1 comes 2, after 2 comes 0.
    assert nats_of_window(scorer, (0, 1, 2, 0), batch=2) == pytest.approx(2 * math.log(2))
    assert nats_of_window(TableScorer(table * np.nan), (0, 1), batch=1) == math.inf


# -- texts --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "llm")


def test_a_text_becomes_windows_that_fit(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be " * 500, encoding="utf-8")
    windows = windows_of_text(text, folder / "model.onnx", DECODER)
    assert {len(window) for window in windows} == {WINDOW}
    assert sum(map(len, windows)) == TEXT_TOKENS
    short = windows_of_text(text, folder / "model.onnx", replace(DECODER, context=100))
    assert max(map(len, short)) == 100


@pytest.mark.parametrize("count", [1, 2])
def test_a_text_for_no_language_model_is_refused_with_the_reason(count: int) -> None:
    model = make_model()
    request = SimpleNamespace(sampling=SimpleNamespace(text="t.txt"), generate="auto")
    with pytest.raises(UsageError) as refusal:
        check_text(cast(PlanRequest, request), [model] * count)
    assert (why_no_decoder(model) in refusal.value.message) == (count == 1)


@pytest.mark.parametrize(
    ("content", "vocabulary", "has_tokenizer"),
    [
        (b"", 512, True),
        (b"\xff\xfe\x00", 512, True),
        (b"to be or not to be", 20, True),
        (b"to be or not to be", 512, False),
    ],
)
def test_a_text_that_can_not_be_foreseen_is_refused(
    folder: Path, tmp_path: Path, content: bytes, vocabulary: int, has_tokenizer: bool
) -> None:
    pytest.importorskip("tokenizers")
    text = tmp_path / "text.txt"
    text.write_bytes(content)
    if not has_tokenizer:
        (folder / "tokenizer.json").unlink()
    with pytest.raises(UsageError) as refusal:
        windows_of_text(text, folder / "model.onnx", replace(DECODER, vocabulary=vocabulary))
    assert refusal.value.place == "--ort-text"
