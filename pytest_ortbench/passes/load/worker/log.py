"""Reading what MLPerf's load generator logged about one test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

#: What each line of the detailed log starts with.
_MARK = ":::MLLOG "
#: Rules of the verdict, by their key, as the summary words them; what a broken one explains best
#: comes first.
_RULES = {
    "result_perf_constraints_met": "Performance constraints satisfied: NO",
    "early_stopping_met": "Early stopping satisfied: NO",
    "result_min_duration_met": "Min duration satisfied: NO",
    "result_min_queries_met": "Min queries satisfied: NO",
}
#: What the generator says of its own bookkeeping, which decides nothing; its log has it.
_NOISE = ("Logging allocation", "TLS loggers")
_GAVE_UP, _MORE_QUERIES = "Too many outstanding queries", "pre-generates more queries"
_PERCENTILE = re.compile(r"result_(\d+\.\d+)_percentile_(?:per_query_)?latency_ns")
_FIRST_TOKEN = re.compile(r"result_first_token_(\d+\.\d+)_percentile_latency_ns")
_TOKEN_TIME = re.compile(r"result_time_per_output_token_(\d+\.\d+)_percentile_ns")
#: What is said of the number of queries: of requests, or of each limit of tokens.
_EARLY_STOPPING = {
    "early_stopping_result": "",
    "early_stopping_ttft_result": "TTFT: ",
    "early_stopping_tpot_result": "TPOT: ",
}
_LATENCY = re.compile(rb'"name":"Sample".*?"query_seq":(\d+).*?"complete_ns":(-?\d+)')
_ISSUE = re.compile(rb'"name":"Sample".*?"sample_seq":(\d+).*?"issue_start_ns":(-?\d+)')
_FIRST = re.compile(
    rb'"name":"Token_Latency".*?"ts":([\d.]+),.*?"issue_delay":(-?\d+),"issue_to_done":(-?\d+)'
)
_WHOLE = re.compile(rb'"name":"Sample".*?"ph":"b".*?"ts":([\d.]+),.*?"complete_ns":(-?\d+)')
_SENTENCE = re.compile(r"(?<=\.)\s+")


@dataclass(slots=True)
class Logged:
    """What the log of a test says.

    Attributes:
        values: The last value of each key.
        problems: Errors and warnings in order.
    """

    values: dict[str, object] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool | None:
        """The verdict; ``None`` if there is none."""
        verdict = self.values.get("result_validity")
        return None if verdict is None else verdict == "VALID"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Rules that failed, advice, and what went wrong, in the generator's words."""
        failed = [words for key, words in _RULES.items() if self.values.get(key) is False]
        advice = self.text("result_invalid_reason")
        sentences = _SENTENCE.split(advice) if advice else []
        if any(_GAVE_UP in problem for problem in self.problems):
            # It advises more queries for a test that it cut short itself.
            sentences = [sentence for sentence in sentences if _MORE_QUERIES not in sentence]
        if self.values.get("early_stopping_met") is False and not advice:
            # In time, but too few queries to vouch for it: it says how many more it takes.
            sentences = _SENTENCE.split(self.early_stopping)
        problems = self.problems
        if failed:
            # Without a failed rule one of them must be what made it INVALID.
            problems = [text for text in problems if not any(noise in text for noise in _NOISE)]
        return (*failed, *(text for text in sentences if text), *dict.fromkeys(problems))

    @property
    def percentiles_ns(self) -> dict[str, int]:
        """Latency by percentile: ``{"99": 1234}``."""
        return self._percentiles(_PERCENTILE)

    @property
    def first_token_percentiles_ns(self) -> dict[str, int]:
        """Time to the first token by percentile; empty where no request told it."""
        return self._percentiles(_FIRST_TOKEN)

    @property
    def token_time_percentiles_ns(self) -> dict[str, int]:
        """Time per output token by percentile; likewise."""
        return self._percentiles(_TOKEN_TIME)

    @property
    def early_stopping(self) -> str:
        """What it says on the number of queries, of each limit."""
        return " ".join(
            start + self.text(key) for key, start in _EARLY_STOPPING.items() if self.text(key)
        )

    def _percentiles(self, pattern: re.Pattern[str]) -> dict[str, int]:
        percentiles: dict[str, int] = {}
        # Where a query has several requests, the times of whole queries come last.
        for key, value in sorted(self.values.items(), key=lambda entry: "per_query" in entry[0]):
            match = pattern.fullmatch(key)
            if match is not None:
                percentiles[f"{float(match[1]):g}"] = int(str(value))
        return percentiles

    @property
    def seeds(self) -> dict[str, str]:
        """Seeds in force by name."""
        start = "effective_"
        return {
            key.removeprefix(start): str(value)
            for key, value in self.values.items()
            if key.startswith(start) and key.endswith("rng_seed") and value
        }

    def integer(self, *keys: str) -> int | None:
        """Return the first of the keys that was logged, as a whole number."""
        number = self.number(*keys)
        return None if number is None else round(number)

    def number(self, *keys: str) -> float | None:
        """Return the first of the keys that was logged, as a number."""
        for key in keys:
            value = self.values.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        return None

    def text(self, key: str) -> str:
        """Return a text with single blanks; empty if it was not logged."""
        return " ".join(str(self.values.get(key) or "").replace(" * ", " ").split())


def read_detail(lines: Iterable[str]) -> Logged:
    """Read the detailed log; a line that is cut off is left out."""
    logged = Logged()
    for line in lines:
        if not line.startswith(_MARK):
            continue
        try:
            entry = json.loads(line[len(_MARK) :])
            key, value, metadata = entry["key"], entry["value"], entry["metadata"]
        except (ValueError, KeyError):
            continue
        logged.values[key] = value
        if metadata.get("is_error") or metadata.get("is_warning"):
            logged.problems.append(" ".join(str(value).split()))
    return logged


def read_summary(path: Path) -> str:
    """Return the summary without the parameters, which the detailed log has too."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    kept = text.partition("Test Parameters Used")[0]
    return "\n".join(line for line in kept.splitlines() if line.strip("=- "))


def read_latencies(path: Path) -> list[int]:
    """Return latencies from the scheduled arrival, in nanoseconds, by number of the query.

    Of a query with several requests the last answer counts.
    """
    latencies: dict[int, int] = {}
    with path.open("rb") as file:
        for line in file:
            match = _LATENCY.search(line)
            if match is not None:
                query, latency = int(match[1]), int(match[2])
                latencies[query] = max(latency, latencies.get(query, 0))
    return [latencies[query] for query in sorted(latencies)]


def read_issue_delays(path: Path) -> tuple[int, ...]:
    """Return how late each request was issued, in nanoseconds, in the order of their arrival."""
    with path.open("rb") as file:
        matches = [match for line in file if (match := _ISSUE.search(line)) is not None]
    delays = {int(match[1]): int(match[2]) for match in matches}
    return tuple(delays[request] for request in sorted(delays))


@dataclass(frozen=True, slots=True)
class TokenTimes:
    """When the tokens of each query were there.

    Attributes:
        first_ns: Time to the first token, from the scheduled arrival.
        later_ns: Time per output token: that from the first to the last, by the number of tokens
            but the first.
    """

    first_ns: tuple[int, ...]
    later_ns: tuple[int, ...]


def read_token_times(path: Path, tokens: int) -> TokenTimes:
    """Return what the trace says of tokens; a query without its first token is left out.

    Args:
        path: The trace.
        tokens: Tokens of each request, at least two.
    """
    first: dict[bytes, int] = {}
    later: dict[bytes, int] = {}
    with path.open("rb") as file:
        for line in file:
            # Both are known by the time of the scheduled arrival.
            if (match := _FIRST.search(line)) is not None:
                first[match[1]] = int(match[2]) + int(match[3])
            elif (match := _WHOLE.search(line)) is not None and match[1] in first:
                later[match[1]] = (int(match[2]) - first[match[1]]) // (tokens - 1)
    return TokenTimes(tuple(first[at] for at in later), tuple(later.values()))
