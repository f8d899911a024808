"""What a language model generates: first token, tokens per second, cache, quality."""

from __future__ import annotations

from pytest_ortbench.core.metric import metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass

_METRICS = (
    metric(
        "first_token",
        "first_token_s",
        "s",
        "lower",
        "Median time to the first token of a request: reading its prompt and choosing one token.",
    ),
    metric(
        "prefill_rate",
        "prefill_tokens_per_s",
        "1/s",
        "higher",
        "Tokens of the prompts, of all sequences, read a second: without the time for choosing.",
        counted="tokens",
    ),
    metric(
        "token_time",
        "token_time_s",
        "s",
        "lower",
        "Median over requests of the time per output token: that of all tokens but the first, "
        "divided by their number.",
    ),
    metric(
        "token_p50",
        "token_p50_s",
        "s",
        "lower",
        "Median time between two tokens of a sequence, the first one not counted.",
    ),
    metric("token_p90", "token_p90_s", "s", "lower", "90th percentile of the same times."),
    metric("token_p99", "token_p99_s", "s", "lower", "99th percentile of the same times."),
    metric(
        "decode_rate",
        "decode_tokens_per_s",
        "1/s",
        "higher",
        "Tokens of one sequence a second, the first one not counted.",
        counted="tokens",
    ),
    metric(
        "decode_rate_batch",
        "decode_batch_tokens_per_s",
        "1/s",
        "higher",
        "Tokens of all sequences of a batch a second, likewise.",
        counted="tokens",
    ),
)

PASS = Pass(
    name="generation",
    result_field="generation",
    measure=".run:measure",
    lacking=".facts:GenerationCheck",
    add_numbers=".numbers:add_generation",
    metrics=_METRICS,
    metrics_place=Place(rank=5),
    columns=(
        (Place(after="session_create_warm_s", rank=5), tuple(own.column for own in _METRICS)),
    ),
)
