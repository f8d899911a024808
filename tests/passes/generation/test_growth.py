"""Memory as the context grows: what is read on the way, and what a token takes of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.case import InputSpec, Provider, SessionConfig
from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.passes.generation.facts import ContextGrowth, GenerationCheck
from pytest_ortbench.passes.generation.questions import CheckGeneration
from pytest_ortbench.passes.generation.worker.growth import (
    ModelFailedError,
    ToldDecoder,
    grow,
    why_not_seen,
)
from pytest_ortbench.schema.meaning import faults_of
from pytest_ortbench.worker.memory import Resident
from tests.launch.cases import case_of
from tests.passes.generation.generated import make_generated, make_generating_case, make_request

MB = 1_000_000
GROWTH = ContextGrowth(
    tokens=(18, 58, 118),
    resident_bytes=(100 * MB, 109 * MB, 121 * MB),
    cache_bytes=(18 * MB // 10, 58 * MB // 10, 118 * MB // 10),
)


class FakeDecoder:
    """Holds a number of tokens, and takes a second for each step."""

    def __init__(self, past: int) -> None:
        self.past = past
        self.now = 0.0

    @property
    def cache_bytes(self) -> int:
        return 1000 * self.past

    def read(self, ids: NDArray[np.int64]) -> int:
        self.past += ids.shape[1]
        self.now += 1
        return 0


class FakeSource:
    """A process of 5000 bytes and twice the cache; it had 90000 before anything was watched."""

    name = "fake"

    def __init__(self, decoder: FakeDecoder, *, is_readable: bool = True) -> None:
        self._decoder = decoder
        self._is_readable = is_readable
        self._earlier = 90_000

    def read(self) -> Resident:
        now = 5000 + 2 * self._decoder.cache_bytes
        peak = max(now, self._earlier)
        return Resident(now=now, peak=peak) if self._is_readable else Resident(now=None, peak=None)

    def reset_peak(self) -> None:
        self._earlier = 0


def draw(tokens: int) -> NDArray[np.int64]:
    return np.zeros((2, tokens), dtype=np.int64)


def grown(*, longest: int, seconds: float, is_readable: bool = True) -> ContextGrowth:
    decoder = FakeDecoder(10)
    return grow(
        decoder,
        draw,
        longest=longest,
        source=FakeSource(decoder, is_readable=is_readable),
        seconds=seconds,
        clock=lambda: decoder.now,
    )


def test_sizes_are_read_at_even_lengths() -> None:
    growth = grown(longest=18, seconds=100)
    assert growth.tokens == (10, 12, 14, 16, 18)
    assert growth.cache_bytes == (10_000, 12_000, 14_000, 16_000, 18_000)
    assert growth.resident_bytes == (25_000, 29_000, 33_000, 37_000, 41_000)
    # What the process took before is no peak of these tokens.
    assert growth.peak_bytes == growth.resident_bytes
    assert (growth.source, growth.reason) == ("fake", "")


def test_what_a_model_raises_is_told_from_a_defect_of_ours() -> None:
    class Full(FakeDecoder):
        def read(self, ids: NDArray[np.int64]) -> int:
            error = f"[ONNXRuntimeError] : 2 : no room for {ids.size}\nat node 7"
            raise RuntimeError(error)

    class Unwatched(FakeSource):
        def reset_peak(self) -> None:
            raise AttributeError("no such method")

    full, fine = ToldDecoder(Full(10)), ToldDecoder(FakeDecoder(10))
    with pytest.raises(ModelFailedError) as caught:
        grow(full, draw, longest=18, source=FakeSource(FakeDecoder(10)), clock=lambda: 0.0)
    assert str(caught.value) == "RuntimeError: [ONNXRuntimeError] : 2 : no room for 2"
    with pytest.raises(AttributeError):
        grow(fine, draw, longest=18, source=Unwatched(FakeDecoder(10)), clock=lambda: 0.0)


@pytest.mark.parametrize(
    ("longest", "seconds", "tokens"),
    [
        (1000, 8, (10, 12, 14, 16, 18)),
        # Slow steps: fewer readings, none twice at one length.
        (1000, 2, (10, 11, 12)),
        (12, 100, (10, 11, 12)),
        (10, 100, (10,)),
    ],
)
def test_time_and_length_end_it(longest: int, seconds: float, tokens: tuple[int, ...]) -> None:
    assert grown(longest=longest, seconds=seconds).tokens == tokens


def test_sizes_that_cannot_be_read_are_a_reason() -> None:
    growth = grown(longest=18, seconds=100, is_readable=False)
    assert growth.tokens == ()
    assert growth.reason


def summary_of(growth: ContextGrowth | None, *, cache_tokens: int | None = 19) -> Summary:
    check = GenerationCheck(
        cache_bytes=None if cache_tokens is None else 38_000,
        cache_tokens=cache_tokens,
        cache_computed_bytes=38_000,
        growth=growth,
    )
    result = make_generated([[make_request((9, 2, 2, 2))] * 3])
    return summarise(replace(result, generation=check))


def test_a_token_takes_the_rise_between_the_first_length_and_the_last() -> None:
    summary = summary_of(GROWTH)
    taken = summary.quantities["memory_per_token"]
    assert (taken.value, taken.samples) == (21 * MB / 100, 3)
    assert summary.quantities["cache_per_token"].value == 2000


def test_a_cache_that_nobody_sees_is_computed_at_the_length_of_the_request() -> None:
    # 16 of the prompt and 4 new ones.
    summary = summary_of(None, cache_tokens=None)
    assert summary.quantities["cache_per_token"].value == 1900
    assert "memory_per_token" in summary.missing


def test_a_window_takes_nothing_for_one_more_token() -> None:
    check = GenerationCheck(cache_bytes=38_000, cache_tokens=19, cache_computed_bytes=38_000)
    result = make_generated([[make_request((9, 2, 2, 2))] * 3])
    windowed = Decoder(
        ids="ids",
        logits="logits",
        vocabulary=9,
        cache=(CacheTensor(past="p", present="q", type="tensor(float)", shape=(0, 1), window=8),),
    )
    case = replace(result.case, model=replace(result.case.model, decoder=windowed))
    summary = summarise(replace(result, case=case, generation=check))
    assert summary.quantities["cache_computed"].value == 38_000
    assert "cache_per_token" not in summary.quantities
    assert summary.missing["cache_per_token"]


def last(values: Sequence[int], value: int) -> tuple[int, ...]:
    return (*values[:-1], value)


@pytest.mark.parametrize(
    "growth",
    [
        None,
        ContextGrowth(reason="the cache is one buffer"),
        ContextGrowth(),
        ContextGrowth(tokens=(18,), resident_bytes=(MB,), cache_bytes=(MB,)),
        # The cache grew by less than what resident memory wanders by.
        replace(GROWTH, cache_bytes=last(GROWTH.cache_bytes, GROWTH.cache_bytes[0] + MB)),
        # Memory that the process held already was taken, or was given back meanwhile.
        replace(GROWTH, resident_bytes=last(GROWTH.resident_bytes, 105 * MB)),
        replace(GROWTH, resident_bytes=last(GROWTH.resident_bytes, 90 * MB)),
    ],
)
def test_without_evidence_there_is_no_number(growth: ContextGrowth | None) -> None:
    summary = summary_of(growth)
    assert "memory_per_token" not in summary.quantities
    assert summary.missing["memory_per_token"]


def test_readings_of_a_document_must_agree() -> None:
    def faults(growth: ContextGrowth) -> list[str]:
        check = GenerationCheck(growth=growth)
        result = replace(make_generated([[make_request((9, 2))]]), generation=check)
        return [fault.path.rpartition(".")[2] for fault in faults_of(result)]

    assert faults(GROWTH) == []
    assert faults(replace(GROWTH, tokens=(18, 18, 20))) == ["tokens"]
    assert faults(replace(GROWTH, resident_bytes=(1, 2))) == ["resident_bytes"]
    assert faults(replace(GROWTH, peak_bytes=(1, 2))) == ["peak_bytes"]


CACHE = CacheTensor(past="p", present="n", type="tensor(float)", shape=(0, 2, 0, 4))


@pytest.mark.parametrize(
    ("changes", "provider", "is_seen"),
    [
        ({}, Provider(alias="cpu", name="CPUExecutionProvider"), True),
        ({}, Provider(alias="cuda", name="CUDAExecutionProvider"), False),
        ({"cache": ()}, Provider(alias="cpu", name="CPUExecutionProvider"), False),
        ({"shares_buffers": True}, Provider(alias="cpu", name="CPUExecutionProvider"), False),
    ],
)
def test_only_a_cache_that_grows_in_the_process_is_watched(
    changes: dict[str, Any], provider: Provider, is_seen: bool
) -> None:
    case = make_generating_case()
    decoder = replace(
        Decoder(ids="input_ids", logits="logits", vocabulary=9, cache=(CACHE,)),
        **changes,
    )
    case = replace(case, model=replace(case.model, decoder=decoder), provider=provider)
    assert (why_not_seen(case) == "") is is_seen


@pytest.mark.live
def test_memory_rises_by_past_and_present(tmp_path: Path, launcher: ProcessLauncher) -> None:
    (model,) = resolve_models(["builtin:decoder"], root=tmp_path)
    assert model.decoder is not None
    asked = make_generating_case(prompt=16, new=3).generation
    batch = 16
    hint = ValueHint(kind="integers", low=0, high=model.decoder.vocabulary - 1)
    ids = InputSpec(name="input_ids", type="tensor(int64)", shape=(batch, 16), hint=hint)
    case = replace(
        case_of(Path(model.path), inputs=(ids,)),
        # What an arena keeps of smaller tensors is no cache.
        session=SessionConfig(enable_cpu_mem_arena=False),
        model=replace(model, decoder=replace(model.decoder, context=400)),
        batch=batch,
        generation=asked,
    )
    with closing(launcher.open(case, worker=0, deadline=time.monotonic() + 600)) as worker:
        check = worker.ask(CheckGeneration(prompt_tokens=16, new_tokens=3))
    growth = check.growth
    assert growth is not None
    assert growth.reason == ""
    summary = summarise(
        replace(make_generated([[make_request((9, 2))]], case=case), generation=check)
    )
    # Keys and values of 4 layers with 4 heads of 64 numbers in fp32.
    formula = 2 * 4 * 4 * 64 * 4 * batch
    assert summary.quantities["cache_per_token"].value == formula
    tokens = growth.tokens[-1] - growth.tokens[0]
    assert growth.cache_bytes[-1] - growth.cache_bytes[0] == formula * tokens
    # Room for logits was made before the first reading; past and present are one copy each: two,
    # not one and not three, however far decoding gets in its time.
    taken = summary.quantities["memory_per_token"].value
    assert taken == pytest.approx(2 * formula, rel=0.25)
