"""Flat rows: the columns, their order, and cells that stay empty."""

from __future__ import annotations

import dataclasses
import json

from pytest_ortbench.analysis.rows import COLUMNS
from pytest_ortbench.core.case import SymbolSize
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import Flag
from tests.results_factory import make_case, make_placement, make_result, make_run
from tests.summarised import row_of, rows_of

PROMISED = """case_id, model, precision, provider, device, runtime, batch, dims, threads,
concurrency, status, workers, samples, latency_p50_s, latency_p50_low_s, latency_p50_high_s,
latency_p90_s, latency_p95_s, latency_p99_s, latency_mean_s, latency_min_s, throughput_per_s,
session_create_s, first_inference_s, warmup_s, peak_rss_bytes, process_peak_rss_bytes,
session_rss_bytes, device_memory_bytes, model_bytes, cpu_utilisation, cpu_s_per_inference, power_w,
energy_per_inference_j, nodes_on_provider, nodes_total, partitions, ops_elsewhere,
time_on_provider, precision_executed, accuracy_finite, accuracy_max_abs, accuracy_cosine,
accuracy_sqnr_db, accuracy_top1, flags, message"""


def test_columns_begin_with_the_promised_ones_in_order():
    promised = [name.strip() for name in PROMISED.split(",")]
    assert list(COLUMNS[: len(promised)]) == promised
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert {metric.column for metric in METRICS.values()} <= set(COLUMNS)


def test_a_measured_case():
    case = make_case(provider="openvino:GPU", batch=4, dims={"seq": 128, "width": 32})
    placement = make_placement(case.provider.name, elsewhere={"TopK": 2, "Resize": 1})
    result = make_result(
        case=case, placement=placement, flags=[Flag(name="PARTIAL"), Flag(name="STEAL")]
    )
    cells = row_of(result, make_run([result]))
    assert tuple(cells) == COLUMNS
    assert cells["case_id"] == "mobilenet_v2/native/openvino:GPU/b4/seq:128/width:32"
    assert (cells["provider"], cells["device"]) == ("openvino", "GPU")
    assert (cells["batch"], cells["dims"]) == (4, "seq:128 width:32")
    assert (cells["threads"], cells["concurrency"]) == (2, 1)
    assert (cells["status"], cells["workers"], cells["samples"]) == ("measured", 3, 1200)
    assert cells["ops_elsewhere"] == "TopK:2 Resize:1"
    assert cells["flags"] == "PARTIAL STEAL"
    assert (cells["nodes_on_provider"], cells["nodes_total"]) == (97, 100)
    assert cells["message"] is None
    assert cells["power_w"] is None
    assert cells["peak_rss_bytes"] == 60_008_192
    assert cells["accuracy_finite"] == 1
    assert cells["runtime_version"] == "1.32.0"
    low, middle, high = (cells[f"latency_p50{end}_s"] for end in ("_low", "", "_high"))
    assert isinstance(low, float)
    assert isinstance(middle, float)
    assert isinstance(high, float)
    assert low < middle < high


def test_a_failed_case_is_a_row_with_its_message():
    result = make_result(case=make_case(provider="cuda"), status="unavailable")
    cells = row_of(result, make_run([result]))
    assert (cells["status"], cells["message"]) == ("unavailable", "the worker died")
    assert cells["device"] is None
    assert cells["flags"] is None
    assert cells["threads"] is None
    assert all(
        cells[metric.column] is None for name, metric in METRICS.items() if name != "model_size"
    )


def test_every_case_of_a_run_is_a_row():
    run = make_run()
    assert [cells["case_id"] for cells in rows_of(run)] == [
        result.case.case_id for result in run.cases
    ]


def test_rows_are_plain_json_without_nan():
    json.dumps(rows_of(make_run()), allow_nan=False)


def test_dims_hold_the_sizes_that_nobody_set() -> None:
    case = make_case(dims={"seq": 128})
    spec = dataclasses.replace(
        case.inputs[0],
        resolved=(
            SymbolSize(symbol="N", size=1, origin="batch", how="batch axis"),
            SymbolSize(symbol="H", size=224, origin="default", how="default: image size"),
            SymbolSize(symbol="seq", size=128, origin="dims", how="--ort-dims"),
        ),
    )
    case = dataclasses.replace(case, inputs=(spec,))
    assert row_of(make_result(case=case), make_run([]))["dims"] == "seq:128 H:224"
