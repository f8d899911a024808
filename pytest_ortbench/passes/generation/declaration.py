"""What a language model generates: first token, tokens per second, cache, quality."""

from __future__ import annotations

from pytest_ortbench.core.metric import metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, TimedUnit

_METRICS = (
    metric(
        "ttft",
        "ttft_s",
        "s",
        "lower",
        "Median time to first token in the model: reading the prompt and choosing one token.",
    ),
    metric(
        "request_ttft",
        "request_ttft_s",
        "s",
        "lower",
        "Median time to first token of a request: `ttft`, and before it the template, the "
        "tokeniser and the making of a generator.",
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
        "tpot",
        "tpot_s",
        "s",
        "lower",
        "Median over requests of the time per output token: that of all tokens but the first, "
        "divided by their number.",
    ),
    metric(
        "itl_p50",
        "itl_p50_s",
        "s",
        "lower",
        "Inter-token latency: median time between two tokens of a sequence.",
    ),
    metric("itl_p90", "itl_p90_s", "s", "lower", "90th percentile of the same times."),
    metric("itl_p99", "itl_p99_s", "s", "lower", "99th percentile of the same times."),
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

#: Columns of flat rows that say what was asked of a request.
_ASKED = ("engine", "prompt_tokens", "new_tokens", "depth")

PASS = Pass(
    name="generation",
    result_field="generation",
    measure=".run:measure",
    lacking=".facts:GenerationCheck",
    add_numbers=".numbers:add_generation",
    metrics=_METRICS,
    metrics_place=Place(rank=5),
    columns=(
        (
            Place(after="session_create_warm_s", rank=5),
            (*_ASKED, *(own.column for own in _METRICS)),
        ),
    ),
    cells=".report:asked_cells",
    shown_columns=".report:COLUMNS",
    unit=TimedUnit(
        name="requests",
        case_field="generation",
        knobs=("workload", "engine", "prompt", "new", "depth"),
        speed=("tpot", "time per token"),
        first=("ttft", "first token"),
        rate="decode_rate_batch",
        judged=("ttft", "tpot"),
        columns=".report:request_columns",
        about=".report:what_requests_include",
    ),
)
