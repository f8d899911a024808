"""The load pass: a case under the arrivals of MLPerf's load generator. Raw facts only.

A *query* is what the generator issues; it holds one *request* (one inference of the case), or
several in the multi-stream and offline scenarios. Rates count requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.exchange import Exchanges

#: Every scenario that can be asked for, and what it stands for.
SCENARIOS: dict[str, str] = {
    "single-stream": "one query at a time, the next one when the last one returned",
    "multi-stream": "eight requests at a time, the next eight when all of them returned",
    "server": "requests arrive at random (Poisson) at a given rate",
    "offline": "all requests are available from the start",
    "peak": "the highest rate at which the server scenario is still VALID",
}
#: Limits of requests to a language model as they are written.
TTFT, TPOT = "ttft", "tpot"
#: What they are of.
TOKEN_LIMITS: dict[str, str] = {TTFT: "time to first token", TPOT: "time per output token"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOrigin:
    """The file of what production reported that a load was made of.

    Attributes:
        file: Its name, or those of two scrapes.
        digest: The first 16 hexadecimal digits of its SHA-256; of two files, of that of theirs.
        gives_limit: Whether the limit of the latency is from it too, not the rate alone.
    """

    file: str
    digest: str
    gives_limit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One load as asked for.

    Attributes:
        text: As written, which names it: ``server:100:20ms``.
        scenario: A key of :data:`SCENARIOS`.
        percent: Percentile that must keep the bound; for scenarios without a bound, the one that
            the number of queries must suffice for.
        rate_per_s: Requests a second that arrive, for ``server``.
        latency_s: The bound, for ``server`` and ``peak``.
        first_token_s: Instead of it, the bound of the time to the first token, from the arrival;
            ``None`` for none.
        token_time_s: Likewise of the time per output token: that from the first token to the last,
            by the number of tokens but the first.
        origin: The file that it was made of; ``None`` for one that the user wrote.
    """

    text: str
    scenario: str
    percent: float
    rate_per_s: float | None = None
    latency_s: float | None = None
    first_token_s: float | None = None
    token_time_s: float | None = None
    origin: LoadOrigin | None = None

    @property
    def is_of_tokens(self) -> bool:
        """Whether tokens are bounded, which requests to a language model alone have."""
        return self.first_token_s is not None or self.token_time_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTest:
    """One test of the generator, from its own logs.

    Attributes:
        rate_per_s: Rate of arrival that was asked for; ``None`` where the scenario has none.
        least_s: Duration that was asked for.
        least_queries: Queries that were asked for.
        most_outstanding: Requests in the queue at which the generator gives up; 0 for no such end.
        valid: The generator's verdict; ``None`` if there was no test.
        reasons: Rules that failed and the generator's advice, in its own words.
        queries: Queries that it counted.
        requests: Requests that were answered.
        late: Queries over the bound; ``None`` where the scenario has none. Of bounds of tokens:
            over one of them, or ``None`` where single queries are not known.
        duration_s: From the first query's issue to the last answer.
        scheduled_per_s: Rate at which the arrivals really were scheduled.
        completed_per_s: Requests answered a second.
        min_ns: Smallest latency of a query, counted from its scheduled arrival.
        max_ns: Largest.
        mean_ns: Mean.
        percentiles_ns: Latency by percentile (``99``), as the generator reports them.
        latencies_ns: Latencies of the queries in order, thinned.
        stride: How many queries ``latencies_ns`` holds one of.
        latencies_note: Why there are none.
        first_token_percentiles_ns: Time to the first token by percentile, where tokens are bounded.
        token_time_percentiles_ns: Time per output token by percentile, likewise.
        late_first_token: Queries over the bound of the first token; ``None`` where there is none,
            or single queries are not known.
        late_token_time: Likewise of the time per output token.
        tokens_per_s: Tokens of all requests written a second.
        early_stopping: What the generator says on the number of queries.
        seeds: The generator's seeds by name; text, since they have 64 bits.
        version: Of the generator.
        log: Its summary, without the parameters.
        exchanges: What the client saw, where requests went to an endpoint; ``None`` where a session
            ran them in this process.
        client_kept_rate: Whether the client sent requests when they arrived; ``None`` likewise.
    """

    rate_per_s: float | None = None
    least_s: float = 0.0
    least_queries: int = 0
    most_outstanding: int = 0
    valid: bool | None = None
    reasons: tuple[str, ...] = ()
    queries: int = 0
    requests: int = 0
    late: int | None = None
    duration_s: float = 0.0
    scheduled_per_s: float | None = None
    completed_per_s: float | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    mean_ns: int | None = None
    percentiles_ns: dict[str, int] = field(default_factory=dict)
    latencies_ns: tuple[int, ...] = ()
    stride: int = 1
    latencies_note: str = ""
    first_token_percentiles_ns: dict[str, int] = field(default_factory=dict)
    token_time_percentiles_ns: dict[str, int] = field(default_factory=dict)
    late_first_token: int | None = None
    late_token_time: int | None = None
    tokens_per_s: float | None = None
    early_stopping: str = ""
    seeds: dict[str, str] = field(default_factory=dict)
    version: str = ""
    log: str = ""
    exchanges: Exchanges | None = None
    client_kept_rate: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What became of one load of a case.

    Attributes:
        spec: What was asked for.
        tests: One entry a test in order; a search for the peak has several.
        answer: Index of the test that answers: the only one, or the highest VALID rate of a
            search; ``None`` where no test does.
        beyond_per_s: Lowest rate above the answer that a search found INVALID, twice unless the
            search ran out of time; ``None`` where it found none.
        official: Whether durations and numbers of queries are those of MLPerf's rules. Without
            it a result is non-conforming, whatever it says.
        callers: Threads that take queries, over all sessions; of ``single-stream`` one, whatever
            the case has.
        sessions: Sessions that they take them for.
        threads: Intra-op threads of each session.
        capacity_per_s: Requests a second of the case's standard pass, which the search started at.
        reason: Why there is no test, or no answer; empty otherwise.
        note: What the figures leave out.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    spec: LoadSpec
    tests: tuple[LoadTest, ...] = ()
    answer: int | None = None
    beyond_per_s: float | None = None
    official: bool = False
    callers: int = 1
    sessions: int = 1
    threads: int = 0
    capacity_per_s: float | None = None
    reason: str = ""
    note: str = ""
    interrupted: bool = False

    @property
    def test(self) -> LoadTest | None:
        """The test that answers."""
        return None if self.answer is None else self.tests[self.answer]

    @property
    def valid(self) -> bool | None:
        """VALID, INVALID, or ``None`` where nothing was tested."""
        if self.test is not None:
            return self.test.valid
        return False if self.tests else None

    @property
    def total_threads(self) -> int:
        """Threads that compute: the callers, and each session's own beside the one that calls."""
        return self.callers + self.sessions * max(0, self.threads - 1)
