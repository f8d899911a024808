"""Requests of language models in words, and the columns of their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import EXACT_DB, FILE_ENGINES, GENERATE
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placing import Place
from pytest_ortbench.core.units import significant
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import Entry

#: Engines whose steps include the choice of a token.
_CHOOSING = (FILE_ENGINES[1], GENERATE)
#: What was asked of a request.
_ASKED = (
    Column(
        key="prompt",
        heading="prompt",
        about="Tokens of the prompt of each sequence, drawn anew for every request.",
        row="prompt_tokens",
    ),
    Column(
        key="new",
        heading="new",
        about="Tokens that each sequence writes, the first one included.",
        row="new_tokens",
    ),
    Column(
        key="depth",
        heading="depth",
        about="Tokens of each sequence in the cache before the prompt.",
        row="depth",
    ),
    Column(
        key="engine",
        heading="engine",
        about="The generation engine: this package's loop on an ONNX Runtime session, or "
        "onnxruntime-genai; of a framework generate of transformers, or this package's loop on "
        "the model.",
        row="engine",
        right=False,
    ),
)

_TOOK = (
    Column(
        key="ttft",
        heading="TTFT",
        about="Time to first token: reading the prompt and choosing one token, never divided by "
        "the batch.",
        row="ttft_s",
        metric="ttft",
    ),
    Column(
        key="tpot",
        heading="TPOT",
        about="Time per output token: that of all tokens but the first, by their number; the "
        "median of the workers' medians over requests.",
        row="tpot_s",
        metric="tpot",
    ),
    Column(
        key="tpot-interval",
        heading="95 % interval",
        about="Interval of the time per output token over fresh processes; a request counts as "
        "one sample.",
        interval_of="tpot",
        rank=1,
        right=False,
    ),
    Column(
        key="itl-p99",
        heading="ITL p99",
        about="Inter-token latency: 99th percentile of the time between two tokens of a sequence.",
        row="itl_p99_s",
        metric="itl_p99",
        rank=4,
    ),
    Column(
        key="decode",
        heading="tokens/s",
        about="Tokens of one sequence a second, the first one not counted.",
        row="decode_tokens_per_s",
        metric="decode_rate",
        rank=2,
    ),
    Column(
        key="decode-batch",
        heading="batch tokens/s",
        about="Tokens of all sequences of a batch a second, the first ones not counted.",
        row="decode_batch_tokens_per_s",
        metric="decode_rate_batch",
        rank=3,
    ),
    Column(
        key="prefill",
        heading="prefill tokens/s",
        about="Tokens of the prompts of all sequences, read a second.",
        row="prefill_tokens_per_s",
        metric="prefill_rate",
        rank=5,
    ),
)

_QUALITY = (
    Column(
        key="kl",
        heading="KL",
        about="Mean Kullback-Leibler divergence of the logits from the fp32 reference's, in nats.",
        row="logits_kl_nats",
        metric="logits_kl",
        rank=6,
    ),
    Column(
        key="agree",
        heading="same tokens",
        about="Share of tokens, written greedily, that the fp32 reference writes too.",
        row="greedy_agreement",
        metric="greedy_agreement",
        rank=6,
    ),
    Column(
        key="perplexity",
        heading="perplexity",
        about="Perplexity of the text of --ort-text; lower is better.",
        row="perplexity",
        metric="perplexity",
        rank=5,
    ),
)

#: What a token of context takes; only where people ask for it.
_CONTEXT = (
    Column(
        key="token-cache",
        heading="cache/token",
        about="Keys and values of one more token of all sequences, by their shapes.",
        row="cache_per_token_bytes",
        metric="cache_per_token",
    ),
    Column(
        key="token-memory",
        heading="memory/token",
        about="Rise of resident memory for one more token of all sequences.",
        row="memory_per_token_bytes",
        metric="memory_per_token",
    ),
)

#: Of requests that begin with an encoder; shown where there are such.
_HEARD = (
    Column(
        key="encoder",
        heading="encoder",
        about="Time in the encoder that the decoder listens to, once a request; part of TTFT.",
        row="encoder_time_s",
        metric="encoder_time",
        rank=3,
    ),
    Column(
        key="rtf",
        heading="RTF",
        about="Real-time factor: time of a request divided by that of the sound that it is about; "
        "below 1 it keeps up with the sound.",
        row="real_time_factor",
        metric="real_time_factor",
        rank=1,
    ),
)

_REQUEST = Column(
    key="request",
    heading="request",
    about="Median time of a whole request, from the ids of its prompt to its last token.",
    row="latency_p50_s",
    metric="latency_p50",
    rank=7,
)

#: Columns that people may ask tables for.
COLUMNS = tuple(
    (Place(after="workers", rank=10), column)
    for column in (*_ASKED, *_TOOK, *_HEARD, _REQUEST, *_QUALITY, *_CONTEXT)
)

#: Usual columns that stand behind those of requests, and those that a narrow table leaves out.
_USUAL = ("create", "rss", "placed", "accuracy")


def request_columns(entries: Sequence[Entry], usual: Mapping[str, Column]) -> list[Column]:
    """Return the columns of a table of requests.

    Args:
        entries: Its cases.
        usual: Columns of a table of inferences, by their keys.
    """
    batches = {entry.result.case.batch for entry in entries}
    took = [column for column in _TOOK if column.key != "decode-batch" or batches != {1}]
    return [
        usual["case"],
        *(_asked(column, entries) for column in _ASKED),
        *took,
        *_known(_HEARD, entries),
        _REQUEST,
        *(usual[key] for key in _USUAL),
        *_known(_QUALITY, entries),
        usual["status"],
    ]


def _known(columns: Sequence[Column], entries: Sequence[Entry]) -> list[Column]:
    """Return the columns that have a number in some row."""
    return [column for column in columns if any(entry.quantity(column.metric) for entry in entries)]


def _asked(column: Column, entries: Sequence[Entry]) -> Column:
    """Return a column that leaves first, to be said of all rows, where it says the same of all."""
    same = len({entry.row[column.row] for entry in entries}) == 1
    return replace(column, rank=20) if same else column


def asked_cells(result: CaseResult) -> dict[str, str | int | None]:
    """Return what was asked of the requests of a case, by the name of a column."""
    asked = result.case.generation
    if asked is None:
        return {}
    return {
        "engine": asked.engine,
        "prompt_tokens": asked.prompt_tokens,
        "new_tokens": asked.new_tokens,
        "depth": asked.depth,
    }


def nearness_of_tokens(result: CaseResult) -> str:
    """Return how near what a case writes is to its reference, behind the accuracy of its prompt.

    Nothing where both are exact.
    """
    check = result.generation
    likeness = None if check is None else check.likeness
    if check is None or likeness is None:
        return ""
    if likeness.nonfinite:
        return "tokens NaN/Inf"
    nearness = likeness.sqnr_db
    if check.at_end is not None and check.at_end.is_wrong and check.at_end.median_db is not None:
        nearness = min(nearness, check.at_end.median_db)
    return "" if nearness >= EXACT_DB else f"tokens {significant(nearness, 3)} dB"


def unseen_ends(result: CaseResult) -> list[str]:
    """Say why the end of a request was not looked at; nothing where it was."""
    end = None if result.generation is None else result.generation.at_end
    if end is None or not end.reason:
        return []
    return [f"the end of a request was not compared with one run over all its tokens: {end.reason}"]


def what_requests_include(cases: Sequence[Case]) -> str:
    """Say what the numbers of requests include."""
    engines = {case.generation.engine for case in cases if case.generation is not None}
    choosing = [engine for engine in _CHOOSING if engine in engines]
    chosen = "" if engines <= set(choosing) else ", and without the choice of later tokens"
    if choosing:
        chosen += f"; with {' and '.join(choosing)}, the choice is part of each token"
    if GENERATE in engines:
        chosen += f", and so is all else that {GENERATE} of transformers does"
    sentences = [
        "Requests: a prompt of random tokens, new for each request; then, token by token, the "
        "likeliest one that does not end the text. TTFT: time to the first token; TPOT: time "
        f"per later token; both for the model alone, without tokenising{chosen}."
    ]
    heard = dict.fromkeys(_heard_by(case) for case in cases if case.encoder_inputs)
    if heard:
        sentences.append(
            f"An encoder runs once per request, and its time is part of TTFT: {'; '.join(heard)}. "
            "RTF: time of a request divided by that of the sound."
        )
    return " ".join(sentences)


def _heard_by(case: Case) -> str:
    """Say which encoder a case listens to, and what that reads."""
    assert case.model.encoder is not None
    read = ", ".join(f"{spec.name} {list(spec.shape)}" for spec in case.encoder_inputs)
    sound_s = None if case.generation is None else case.generation.sound_s
    sound = "" if sound_s is None else f", {sound_s:g} s of sound"
    return f"{PurePath(case.model.encoder.path).name} on {read}{sound}"
