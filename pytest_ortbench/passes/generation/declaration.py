"""What a language model generates: first token, tokens per second, cache, quality."""

from __future__ import annotations

from pytest_ortbench.core.metric import FROM_ZERO, metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, PassFigure, Phase, TimedUnit

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
        "encoder_time",
        "encoder_time_s",
        "s",
        "lower",
        "Median time in the encoder that a decoder listens to, once a request; part of ttft.",
    ),
    metric(
        "real_time_factor",
        "real_time_factor",
        "1",
        "lower",
        "Median time of a request divided by that of the sound that it is about: 0.05 takes 50 ms "
        "for a second of sound, and below 1 it keeps up with it.",
        reach=FROM_ZERO,
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
    metric(
        "logits_sqnr",
        "logits_sqnr_db",
        "dB",
        "higher",
        "Signal to noise ratio of the logits against the fp32 reference's, less the mean of each "
        "token's, after the tokens that the reference writes.",
    ),
    metric(
        "logits_kl",
        "logits_kl_nats",
        "1",
        "lower",
        "Mean Kullback-Leibler divergence from the reference's tokens, in nats, likewise.",
        reach=FROM_ZERO,
    ),
    metric(
        "logits_top1",
        "logits_top1",
        "ratio",
        "higher",
        "Share of these places where the likeliest token is the reference's.",
    ),
    metric(
        "greedy_agreement",
        "greedy_agreement",
        "ratio",
        "higher",
        "Share of tokens, written greedily, that the reference writes at the same place.",
    ),
    metric(
        "greedy_prefix",
        "greedy_prefix_tokens",
        "1",
        "higher",
        "Tokens, written greedily, before the first that the reference does not write: the fewest "
        "of all sequences.",
        reach=FROM_ZERO,
    ),
    metric(
        "perplexity",
        "perplexity",
        "1",
        "lower",
        "Perplexity of the text of --ort-text: the exponential of the mean negative log "
        "probability of its tokens, in windows of 256 tokens that each begin with an empty "
        "cache.",
        reach=FROM_ZERO,
    ),
    metric(
        "perplexity_ratio",
        "perplexity_ratio",
        "1",
        "lower",
        "That perplexity divided by the reference's.",
        reach=FROM_ZERO,
    ),
    metric(
        "cache_bytes",
        "cache_bytes",
        "bytes",
        "lower",
        "Keys and values of all sequences at the end of a request, as they are bound.",
    ),
    metric(
        "cache_computed",
        "cache_computed_bytes",
        "bytes",
        "lower",
        "The same by the shapes of keys and values, at the length that is bound or, where an "
        "engine keeps its cache to itself, at that of the request.",
    ),
    metric(
        "cache_per_token",
        "cache_per_token_bytes",
        "bytes",
        "lower",
        "What one more token of all sequences adds to that, by the shapes of keys and values.",
    ),
    metric(
        "memory_per_token",
        "memory_per_token_bytes",
        "bytes",
        "lower",
        "Resident memory that one more token of all sequences takes: the rise while a cache grows "
        "token by token in a fresh session, with past and present, and what an arena keeps.",
    ),
)

#: Columns of flat rows that say what was asked of a request.
_ASKED = ("engine", "prompt_tokens", "new_tokens", "depth")

PASS = Pass(
    name="generation",
    result_field="generation",
    left_out_by="write --ort-generate=off",
    measure=".run:measure",
    lacking=".facts:GenerationCheck",
    phase=Phase(name="generation", doing="looking at what it writes", rank=60),
    questions=(
        (".questions:WriteContinuation", ".worker.reference:write_continuation"),
        (".questions:CheckGeneration", ".worker.check:check_generation"),
    ),
    check_plan=".planning:check_text",
    check_cases=".planning:refuse_unused_requests",
    bounds=".checks:BOUNDS",
    relations=".checks:RELATIONS",
    add_numbers=".numbers.requests:add_generation",
    misses=".numbers.quality:miss_of_tokens",
    beside_accuracy=".report:nearness_of_tokens",
    facts_of_case=".report:unseen_ends",
    shipped_test="test_generation",
    offers=((Place(after="throughput", rank=10), ".fixture:generation"),),
    view="generation",
    metrics=_METRICS,
    metrics_place=Place(rank=5),
    columns=(
        (
            Place(after="session_create_warm_s", rank=5),
            (*_ASKED, *(own.column for own in _METRICS)),
        ),
    ),
    figures=(
        PassFigure(
            name="generation-prompt",
            description="Time to first token and prefill rate against the length of the prompt",
            draw=".figures:draw_prompt",
            place=Place(after="accuracy", rank=1),
        ),
        PassFigure(
            name="generation-depth",
            description="Tokens of a sequence a second against the depth of the cache",
            draw=".figures:draw_depth",
            place=Place(after="accuracy", rank=2),
        ),
        PassFigure(
            name="generation-tokens",
            description="Time between tokens by their position in the output of a request",
            draw=".figures:draw_positions",
            place=Place(after="accuracy", rank=3),
        ),
        PassFigure(
            name="generation-quality",
            description="Quality of what is written against time per token and size",
            draw=".figures:draw_quality",
            place=Place(after="accuracy", rank=4),
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
        columns=".report:request_columns",
        about=".report:what_requests_include",
        gated=(("ttft", ".numbers.requests:ttft_s"), ("tpot", ".numbers.requests:tpot_s")),
        is_timed=".numbers.requests:took_time",
    ),
)
