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
_LATENCY = re.compile(rb'"name":"Sample".*?"query_seq":(\d+).*?"complete_ns":(-?\d+)')
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
        advice = str(self.values.get("result_invalid_reason") or "").strip()
        sentences = _SENTENCE.split(advice) if advice else []
        if any(_GAVE_UP in problem for problem in self.problems):
            # It advises more queries for a test that it cut short itself.
            sentences = [sentence for sentence in sentences if _MORE_QUERIES not in sentence]
        if self.values.get("early_stopping_met") is False and not advice:
            # In time, but too few queries to vouch for it: it says how many more it takes.
            sentences = _SENTENCE.split(self.text("early_stopping_result"))
        problems = self.problems
        if failed:
            # Without a failed rule one of them must be what made it INVALID.
            problems = [text for text in problems if not any(noise in text for noise in _NOISE)]
        return (*failed, *(text for text in sentences if text), *dict.fromkeys(problems))

    @property
    def percentiles_ns(self) -> dict[str, int]:
        """Latency by percentile: ``{"99": 1234}``."""
        percentiles: dict[str, int] = {}
        # Where a query has several requests, the times of whole queries come last.
        for key, value in sorted(self.values.items(), key=lambda entry: "per_query" in entry[0]):
            match = _PERCENTILE.fullmatch(key)
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
