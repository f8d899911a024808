"""Words for metrics that the sentences of a comparison share."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.metrics import METRICS


def metric_words(metric: str) -> str:
    """Name a metric for people: ``latency p50``."""
    return metric.replace("_", " ")


def words_of(metric: str) -> tuple[str, str]:
    """What the best of a metric is called, and how its factor stands to another.

    ``fastest`` and ``faster than`` for times; ``highest throughput`` and ``that of`` for rates;
    ``lowest peak rss`` and ``less than`` for what is spent.
    """
    if METRICS[metric].unit == "s":
        return "fastest", "faster than"
    if METRICS[metric].better == "higher":
        return f"highest {metric_words(metric)}", "that of"
    return f"lowest {metric_words(metric)}", "less than"


def joined_names(names: Sequence[str]) -> str:
    """Return names as a sentence has them: ``desk``, ``desk and rack``, ``desk, rack and edge``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
