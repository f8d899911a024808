"""Prometheus text: read back by prometheus-client's own parser."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.prometheus import prometheus_name, render_prometheus
from tests.report import sample_runs
from tests.summarised import rows_of


def read(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric and by (case, further label if there is one)."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            further = [sample.labels[key] for key in ("status", "flag") if key in sample.labels]
            key = (sample.labels.get("case", ""), *further)
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def test_values_are_those_of_the_rows() -> None:
    run = sample_runs.ten_cases()
    found = read(render_prometheus(shown_run(run)))
    for row in rows_of(run):
        for metric in METRICS.values():
            cell = row[metric.column]
            assert found.get(prometheus_name(metric), {}).get((str(row["case_id"]),)) == cell


def test_failures_and_flags_have_lines_of_their_own() -> None:
    found = read(render_prometheus(shown_run(sample_runs.ten_cases())))
    measured = found["ortbench_case_measured"]
    assert measured["mobilenet_v2/native/cpu/b1", "measured"] == 1.0
    assert measured["mobilenet_v2/native/cuda/b1", "unavailable"] == 0.0
    assert found["ortbench_flag"]["mobilenet_v2/fp16/cpu/b1", "EMULATED"] == 1.0
    assert found["ortbench_run_info"] == {("",): 1.0}


def test_names_follow_the_conventions() -> None:
    names = [prometheus_name(metric) for metric in METRICS.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"ortbench_[a-z0-9_]+", name) for name in names)
    assert prometheus_name(METRICS["latency_p50"]) == "ortbench_latency_p50_seconds"
    assert prometheus_name(METRICS["peak_rss"]) == "ortbench_peak_rss_bytes"
    assert prometheus_name(METRICS["throughput"]) == "ortbench_throughput_per_second"


def test_hostile_names_are_label_values() -> None:
    text = render_prometheus(shown_run(sample_runs.hostile()))
    read(text)
    assert "\x1b" not in text
    families = list(text_string_to_metric_families(text))
    models = {sample.labels.get("model") for family in families for sample in family.samples}
    assert models == {one_line(sample_runs.HOSTILE), None}


def test_a_library_that_does_not_load_is_installed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('broken wheel')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "prometheus_client")
    with pytest.raises(OrtbenchError) as caught:
        render_prometheus(shown_run(sample_runs.one_case()))
    assert "broken wheel" in caught.value.message
    assert "--force-reinstall" in caught.value.hint


def test_without_the_library_the_message_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(OrtbenchError, match=r"pip install 'pytest-ortbench\[prometheus\]'"):
        render_prometheus(shown_run(sample_runs.one_case()))
