"""What the host asks in the load pass."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.load.facts import LoadTest
from pytest_ortbench.schema.question import CaseQuestion, ReadFile


@dataclass(frozen=True, slots=True, kw_only=True)
class PutUnderLoad(CaseQuestion[LoadTest]):
    """Run one test of MLPerf's load generator.

    Attributes:
        scenario: ``single-stream``, ``multi-stream``, ``server`` or ``offline``.
        percent: Percentile of the verdict.
        expected_per_s: Requests a second that the case can do.
        rate_per_s: Requests a second that arrive, for ``server``.
        latency_s: The bound, for ``server``.
        first_token_s: Instead of it, the bound of the time to the first token; ``None`` for none.
        token_time_s: Likewise of the time per output token.
        least_s: Least duration.
        least_queries: Least number of queries.
        most_outstanding: Requests in the queue at which the generator gives up; 0 for never.
        official: Take duration and number of queries from MLPerf's rules instead.
        keep_logs: Folder that keeps the generator's logs; empty for none.
        reference: File of reference outputs, which the answers of an endpoint are compared with;
            empty for none.
    """

    scenario: str
    percent: float
    expected_per_s: float
    rate_per_s: float | None = None
    latency_s: float | None = None
    first_token_s: float | None = None
    token_time_s: float | None = None
    least_s: float
    least_queries: int
    most_outstanding: int = 0
    official: bool = False
    keep_logs: str = ""
    reference: ReadFile = ""

    @property
    def is_of_tokens(self) -> bool:
        """Whether tokens are bounded, and each request tells when its first one is there."""
        return self.first_token_s is not None or self.token_time_s is not None
