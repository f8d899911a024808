"""Loads that are made of what a service reported: scrapes of it, and answers of Prometheus."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.load.facts import Load, LoadOrigin, LoadSpec, LoadTest
from pytest_ortbench.passes.load.numbers.spec import parse_load
from pytest_ortbench.passes.load.planning.asked import read_loads
from pytest_ortbench.passes.load.planning.metrics_file import resolved_load
from pytest_ortbench.passes.load.run import announcements
from pytest_ortbench.schema.document import decode_run, encode_run
from pytest_ortbench.serving.metrics import ServiceMetrics
from tests.refused import refused
from tests.results_factory import make_result, make_run

OURS = "ortbench_serve_request_seconds"
#: Requests up to each bound, of 1,000.
BUCKETS = {"0.01": 500, "0.05": 960, "0.1": 992, "2.5": 999, "+Inf": 1000}


def scrape(
    counts: Mapping[str, float] = BUCKETS,
    *,
    name: str = OURS,
    labels: str = "",
    begin_s: float | None = 1000.0,
    now_s: float | None = 1500.0,
) -> str:
    """A scrape as the service writes it: all that a load takes, and no more."""
    inside = labels and f"{labels},"
    lines = [f'{name}_bucket{{{inside}le="{bound}"}} {count}' for bound, count in counts.items()]
    lines.append(f"{name}_count{{{labels}}} {counts.get('+Inf', 0)}")
    if begin_s is not None:
        lines.append(f"{name}_created{{{labels}}} {begin_s}")
    if now_s is not None:
        lines.append(f"ortbench_serve_time_seconds {now_s}")
    return "\n".join(lines) + "\n"


def answer(series: Sequence[object], kind: str = "vector") -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": series}})


def over_range(
    counts: Mapping[str, Sequence[float]], times: Sequence[float], **labels: str
) -> list[dict[str, object]]:
    """Buckets and count of our histogram over a range, as Prometheus answers."""
    named = {
        **{("bucket", bound): values for bound, values in counts.items()},
        ("count", ""): counts["+Inf"],
    }
    return [
        {
            "metric": {"__name__": f"{OURS}_{part}", **({"le": bound} if bound else {}), **labels},
            "values": [[at, str(value)] for at, value in zip(times, values, strict=True)],
        }
        for (part, bound), values in named.items()
    ]


@pytest.fixture
def read(tmp_path: Path):
    """Write a file, and read the load that it comes to."""

    def read_load(content: str | bytes, behind: str = "", *, name: str = "m.prom") -> LoadSpec:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return resolved(f"from:{name}{behind}", tmp_path)

    return read_load


def resolved(text: str, base: Path) -> LoadSpec:
    return parse_load(resolved_load(text, base=base, place="--ort-load"), place="--ort-load")


# -- what is taken ---------------------------------------------------------------------------------


def test_a_scrape_gives_the_rate_since_its_start_and_the_bound_of_the_bucket(read) -> None:
    spec = read(scrape())
    digest = hashlib.sha256(scrape().encode()).hexdigest()[:16]
    assert spec == LoadSpec(
        text=f"server:2.000:100ms:p99@m.prom:{digest}",
        scenario="server",
        percent=99.0,
        rate_per_s=2.0,
        latency_s=0.1,
        origin=LoadOrigin(file="m.prom", digest=digest, gives_limit=True),
    )


@pytest.mark.parametrize(
    ("behind", "percent", "latency_s", "gives_limit"),
    [
        (":p50", 50.0, 0.01, True),
        (":p96", 96.0, 0.05, True),
        (":P96.1", 96.1, 0.1, True),
        (":20ms", 99.0, 0.02, False),
        (":p95:20ms", 95.0, 0.02, False),
        (":20ms:p95", 95.0, 0.02, False),
    ],
)
def test_percentile_and_limit_may_be_ones_own(
    read, behind: str, percent: float, latency_s: float, gives_limit: bool
) -> None:
    spec = read(scrape(), behind)
    assert (spec.percent, spec.latency_s) == (percent, latency_s)
    assert spec.origin is not None
    assert spec.origin.gives_limit is gives_limit


def test_what_the_service_itself_writes_is_read(read, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [5000.0]
    monkeypatch.setattr(time, "time", lambda: now_s[0])
    metrics = ServiceMetrics("det", "cpu")
    for _ in range(400):
        metrics.went(200, 0.03)
    metrics.went(503, 0.0002)
    now_s[0] += 100.0
    spec = read(metrics.text()[0], ":model=det")
    assert (spec.rate_per_s, spec.latency_s) == (4.01, 0.05)


def test_two_scrapes_give_what_lies_between_them(tmp_path: Path) -> None:
    (tmp_path / "before.prom").write_text(scrape(now_s=1500.0))
    later = {bound: count + 600 for bound, count in BUCKETS.items()} | {"0.01": 500}
    (tmp_path / "after.prom").write_text(scrape(later, now_s=1560.0))
    spec = resolved("from:before.prom+after.prom", tmp_path)
    assert (spec.rate_per_s, spec.latency_s) == (10.0, 0.05)
    assert spec.origin is not None
    assert spec.origin.file == "before.prom+after.prom"


@pytest.mark.parametrize("later", ["0.2", "0.075"])
def test_two_scrapes_with_other_buckets_are_named(tmp_path: Path, later: str) -> None:
    other = {later if bound == "0.1" else bound: 2 * count for bound, count in BUCKETS.items()}
    (tmp_path / "before.prom").write_text(scrape(now_s=1500.0))
    (tmp_path / "after.prom").write_text(scrape(other, now_s=1560.0))
    with pytest.raises(UsageError) as error:
        resolved("from:before.prom+after.prom", tmp_path)
    assert error.value.place == "--ort-load"
    for part in ("before.prom", "after.prom", "buckets", OURS):
        assert part in error.value.message


def test_buckets_of_another_histogram_decide_nothing(tmp_path: Path) -> None:
    later = {bound: count + 600 for bound, count in BUCKETS.items()} | {"0.01": 500}
    others = [scrape({bound: 7, "+Inf": 9}, name="gc_seconds", now_s=None) for bound in "12"]
    (tmp_path / "before.prom").write_text(scrape(now_s=1500.0) + others[0])
    (tmp_path / "after.prom").write_text(scrape(later, now_s=1560.0) + others[1])
    assert resolved("from:before.prom+after.prom", tmp_path).rate_per_s == 10.0


def test_a_file_whose_name_has_a_plus_is_one_file(read) -> None:
    spec = read(scrape(), name="a+b.prom")
    assert spec.origin is not None
    assert spec.origin.file == "a+b.prom"


def test_the_times_of_samples_are_those_of_their_scrape(read) -> None:
    text = "".join(f"{line} 1600000\n" for line in scrape(now_s=None).splitlines())
    assert read(text).rate_per_s == pytest.approx(1000 / 600, rel=1e-3)


def test_without_the_start_of_counters_that_of_the_process_counts(read) -> None:
    text = scrape(begin_s=None) + "process_start_time_seconds 500\n"
    assert read(text).rate_per_s == 1.0


def test_a_query_over_a_range_gives_what_lies_in_it(read) -> None:
    counts = {"0.01": [10, 10, 10], "0.05": [30, 500, 1020], "+Inf": [30, 500, 1030]}
    found = answer(over_range(counts, [0.5, 60, 100.5], instance="a:1"), "matrix")
    spec = read(found, ":p95")
    assert (spec.rate_per_s, spec.latency_s) == (10.0, 0.05)


@pytest.mark.parametrize(
    "found",
    [
        answer([{"metric": {}, "value": [1700000000.1, "12.5"]}]),
        answer([1700000000.1, "12.5"], "scalar"),
        answer([{"metric": {"job": "det"}, "value": [1700000000, "12.5"]}]),
    ],
)
def test_a_number_that_a_query_computed_is_the_rate_beside_a_limit(read, found: str) -> None:
    spec = read(found, ":50ms")
    assert (spec.rate_per_s, spec.latency_s, spec.percent) == (12.5, 0.05, 99.0)


def test_services_of_others_are_read(read) -> None:
    triton = (
        "# HELP nv_inference_request_success Number of successful inference requests\n"
        "# TYPE nv_inference_request_success counter\n"
        'nv_inference_request_success{model="det",version="1"} %s %s\n'
        "# TYPE nv_inference_request_failure counter\n"
        'nv_inference_request_failure{model="det",reason="OTHER",version="1"} %s %s\n'
    )
    labels = 'model_name="llm"'
    vllm = scrape(name="vllm:e2e_request_latency_seconds", labels=labels)
    mlserver = (
        'model_infer_request_success_total{model="det"} 500\n'
        'model_infer_request_success_created{model="det"} 1400\n'
        "ortbench_serve_time_seconds 1500\n"
    )
    own = scrape(name="http_request_duration_seconds", labels='handler="/predict"')
    found = [
        read(triton % (900, 100_000, 100, 100_000) + "process_start_time_seconds 50\n", ":1s"),
        read(vllm),
        read(mlserver, ":1s"),
        read(own, ":metric=http_request_duration_seconds"),
    ]
    assert [(spec.rate_per_s, spec.latency_s) for spec in found] == [
        (20.0, 1.0), (2.0, 0.1), (5.0, 1.0), (2.0, 0.1)
    ]  # fmt: skip


def test_of_several_models_the_named_one_is_taken(read) -> None:
    text = scrape(labels='model="a"') + scrape(
        {"0.01": 400, "+Inf": 400}, labels='model="b"', now_s=None
    )
    assert (read(text, ":model=a").rate_per_s, read(text, ":model=b").rate_per_s) == (2.0, 0.8)


@pytest.mark.parametrize("name", ["C:\\lab\\metrics.txt", "d:/lab/metrics.txt"])
def test_a_drive_of_windows_is_part_of_the_path(name: str, tmp_path: Path) -> None:
    with refused(UsageError, repr(str(tmp_path / name))):
        resolved_load(f"from:{name}:50ms:p90", base=tmp_path, place="--ort-load")


def test_what_powershell_saves_is_told_by_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "m.prom").write_text("up 1\n", encoding="utf-16")
    with refused(UsageError, "UTF-16", hint="curl.exe -o"):
        resolved_load("from:m.prom", base=tmp_path, place="--ort-load")


# -- what is refused -------------------------------------------------------------------------------

SCRAPE = scrape()


@pytest.mark.parametrize(
    ("content", "behind"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("up 1\n", "", id="no known metric"),
        pytest.param("a{ 1\n", "", id="no text format"),
        pytest.param("{}", "", id="no answer"),
        pytest.param('{"status":"error","error":"parse error"}', "", id="a query that failed"),
        pytest.param(answer([]), "", id="nothing found"),
        pytest.param(answer([{"metric": {}, "value": [1, "NaN"]}]), ":1s", id="rate NaN"),
        pytest.param(answer([{"metric": {}, "value": [1, "+Inf"]}]), ":1s", id="rate infinite"),
        pytest.param(answer([{"metric": {}, "value": [1, "-3"]}]), ":1s", id="rate negative"),
        pytest.param(answer([{"metric": {}, "value": [1, "0"]}]), ":1s", id="rate zero"),
        pytest.param(answer([{"metric": {}, "value": [1, "1e9"]}]), ":1s", id="rate too high"),
        pytest.param(answer([{"metric": {}, "value": [1, "x"]}]), ":1s", id="no number"),
        pytest.param(answer([{"metric": {}, "value": [1, "5"]}]), "", id="a rate without a limit"),
        pytest.param(answer([{"metric": {}, "value": [1, "5"]}] * 2), ":1s", id="two numbers"),
        pytest.param(SCRAPE.replace(" 992", " NaN"), "", id="count NaN"),
        pytest.param(SCRAPE.replace("_count{} 1000", "_count{} +Inf"), "", id="count infinite"),
        pytest.param(SCRAPE.replace("_count{} 1000", "_count{} -1000"), "", id="count negative"),
        pytest.param(SCRAPE.replace("_count{} 1000", "_count{} 1e300"), "", id="count enormous"),
        pytest.param(SCRAPE.replace(" 992", " 2"), "", id="buckets that fall"),
        pytest.param(SCRAPE.replace('"0.05"', '"x"'), "", id="a bucket without a bound"),
        pytest.param(SCRAPE.replace('"0.05"', '"NaN"'), "", id="a bucket up to NaN"),
        pytest.param(SCRAPE.replace('"0.05"', '"-0.05"'), "", id="a bucket below zero"),
        pytest.param(scrape({"0.1": 1000} | {"+Inf": 999}), "", id="more within than at all"),
        pytest.param(SCRAPE.replace(f'{OURS}_bucket{{le="+Inf"}} 1000\n', ""), "", id="no +Inf"),
        pytest.param(
            f"{OURS}_count 1000\n{OURS}_created 1000\nortbench_serve_time_seconds 1500\n",
            "",
            id="no buckets",
        ),
        pytest.param(scrape({"0.1": 500, "+Inf": 1000}), "", id="beyond the largest bucket"),
        pytest.param(scrape({"0.1": 50, "+Inf": 50}), ":1s", id="too few for a rate"),
        pytest.param(scrape({"0.1": 200, "+Inf": 200}), "", id="too few for the percentile"),
        pytest.param(scrape(now_s=None), "", id="no time"),
        pytest.param(scrape(begin_s=None), "", id="no start"),
        pytest.param(scrape(begin_s=1500.0), "", id="no duration"),
        pytest.param(scrape(begin_s=1600.0), "", id="a start after the end"),
        pytest.param(scrape(now_s=float("nan")), "", id="time NaN"),
        pytest.param(scrape(begin_s=float("nan")), "", id="start NaN"),
        pytest.param(SCRAPE + SCRAPE, "", id="twice the same"),
        pytest.param(scrape(labels='model="a"') + scrape(labels='model="b"'), "", id="two models"),
        pytest.param(scrape(labels='model="a"'), ":model=b", id="another model"),
        pytest.param(scrape(), ":model=b", id="a model that no one names"),
        pytest.param(scrape(labels='pod="a"') + scrape(labels='pod="b"'), "", id="two services"),
        pytest.param(
            scrape(labels='model="a",pod="a"') + scrape(labels='model="a",pod="b"'),
            ":model=a",
            id="two services of one model",
        ),
        pytest.param(
            SCRAPE + scrape(name="vllm:e2e_request_latency_seconds", now_s=None),
            "",
            id="two metrics",
        ),
        pytest.param(SCRAPE, ":metric=other_seconds", id="a metric that is not there"),
        pytest.param(SCRAPE, ":metric=other_bytes", id="a metric of no seconds"),
        pytest.param(SCRAPE, ":p100", id="no percentile"),
        pytest.param(SCRAPE, ":20", id="no unit"),
        pytest.param(SCRAPE, ":20ms:30ms", id="two limits"),
        pytest.param(SCRAPE, ":colour=red", id="an unknown part"),
        pytest.param(SCRAPE, ":model=", id="an empty part"),
        pytest.param(SCRAPE, ":", id="nothing behind the colon"),
        pytest.param(b"\xff\xfe", "", id="no UTF-8"),
        pytest.param(b"a" * ((32 << 20) + 1), "", id="too large"),
    ],
)
def test_what_tells_no_load_is_refused_with_place_and_next_step(read, content, behind) -> None:
    with pytest.raises(UsageError) as error:
        read(content, behind)
    assert error.value.place.startswith("--ort-load")
    assert error.value.hint


@pytest.mark.parametrize(
    ("content", "behind", "value", "hint"),
    [
        (SCRAPE, ":p100", "'from:m.prom:p100'", "p99"),
        (SCRAPE, ":20", "'from:m.prom:20'", "20ms"),
        (SCRAPE, "::20ms", "'from:m.prom::20ms'", "from:m.prom:20ms"),
        (SCRAPE, f":metric={OURS}_count", f"'{OURS}_count'", f"from:m.prom:metric={OURS}"),
        (answer([{"metric": {}, "value": [1, "1e9"]}]), ":1s", "1000000000 ", "sum(rate("),
        (SCRAPE, ":ttft=2s", "'ttft=2s'", "server:2:ttft=2s"),
        (SCRAPE, ":tpot=", "'tpot='", "server:2:tpot=2s"),
        (SCRAPE, ":percent=", "'percent='", "from:m.prom:p99"),
        (SCRAPE, ":latency=", "'latency='", "from:m.prom:50ms"),
        ('{"data":{}}', "", "'status'", "/api/v1/query"),
        ("[1, 2]", "", "JSON list", '{"status":'),
        (answer([1, "x"], "string"), ":1s", "a text", "sum(rate("),
        (
            answer(
                [
                    {"metric": {"__name__": f"{OURS}_count", "pod": pod}, "values": [[1, "5"]]}
                    for pod in "ab"
                ]
            ),
            "",
            "'pod'",
            '{pod="a"}',
        ),
        (
            'ortbench_serve_model_info{model="a"} 1\nortbench_serve_model_info{model="b"} 1\n'
            + SCRAPE,
            ":model=a",
            "'a', 'b'",
            "one model",
        ),
        (answer([{"metric": {}, "value": [1, "5"]}] * 2), "", "2 values", "from:m.prom:50ms"),
        (answer([{"metric": {}, "value": [1, "5"]}] * 2), ":1s", "2 values", "sum(...)"),
        (
            answer([{"metric": {}, "values": [[1, "5"], [2, "5"]]}], "matrix"),
            ":1s",
            "2 values",
            "/api/v1/query,",
        ),
        (answer([{"metric": {}, "value": [1, "0"]}]), ":1s", "rate of 0", "requests"),
        ("other_ms 1\n", ":metric=other_ms", "'other_ms'", "server:100:20ms"),
        (SCRAPE, ":metric=other_ms", "'other_ms'", f"from:m.prom:metric={OURS}"),
        ("a_seconds 1\n", ":metric=a_seconds", "not a histogram", "server:100:20ms"),
        (
            scrape(name="a_seconds") + scrape(name="b_seconds", now_s=None),
            "",
            OURS,
            "('a_seconds', 'b_seconds'), e.g. from:m.prom:metric=a_seconds",
        ),
        (
            'nv_inference_request_failure{model="a"} 1\n'
            'nv_inference_request_success{model="a"} 9\n',
            "",
            "'nv_inference_request_success'",
            "nv_inference_request_success[1h]",
        ),
    ],
)
def test_what_was_typed_and_what_mends_it_are_named(read, content, behind, value, hint) -> None:
    with refused(UsageError, value, hint=hint):
        read(content, behind)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (SCRAPE.replace(f'{OURS}_bucket{{le="+Inf"}} 1000\n', ""), 'le="+Inf"'),
        (scrape({"0.1": 900} | {"+Inf": 999}).replace("_count{} 999", "_count{} 1000"), "999"),
        (scrape({"0.1": 900, "0.2": 800, "+Inf": 1000}), "0.2 s"),
    ],
)
def test_buckets_that_can_t_be_are_told_with_the_query_for_all(read, content, told) -> None:
    with pytest.raises(UsageError) as error:
        read(content, "")
    assert told in error.value.message
    assert f'{{__name__=~"{OURS}_(bucket|count)"}}' in error.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "from:", "from:missing.prom", "from:.", "from:a+b", "from:a\0b", "from:+",
        "from:~no-such-user/m.prom",
        "from:http://127.0.0.1:8000/metrics", "from:http://127.0.0.1:8000/metrics:50ms",
        "server:2:100ms:p99@m.prom:0123456789abcdef",
    ],
)  # fmt: skip
def test_what_names_no_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as error:
        resolved_load(text, base=tmp_path, place="--ort-load")
    assert error.value.place == "--ort-load"
    assert error.value.hint


@pytest.mark.parametrize(
    ("content", "behind", "proposed"),
    [
        # The limit that is proposed lies above what p99 is known to be above.
        (scrape({"0.1": 500, "+Inf": 1000}), "", ":200ms"),
        (
            scrape({"0.1": 200, "+Inf": 200}, labels='model="net"'),
            ":model=net",
            ":model=net:p95",
        ),
        (SCRAPE, ":metric=other_seconds", f":metric={OURS}"),
    ],
)
def test_the_load_that_is_proposed_can_be_typed(read, content, behind, proposed) -> None:
    with pytest.raises(UsageError) as error:
        read(content, behind)
    assert error.value.hint.split()[-1] == f"from:m.prom{proposed}"
    assert read(content, proposed).rate_per_s


def test_buckets_without_their_count_are_no_metric_that_the_file_has(read) -> None:
    content = "".join(line for line in SCRAPE.splitlines(True) if "_count" not in line)
    for behind in ("", f":metric={OURS}"):
        with pytest.raises(UsageError) as error:
            read(content, behind)
        assert f"{OURS}_count" in error.value.message
        assert "metric=" not in error.value.hint


def test_a_folder_is_told_from_a_file_that_is_missing(tmp_path: Path) -> None:
    for text, is_folder in (("from:.", True), ("from:missing", False)):
        with pytest.raises(UsageError) as error:
            resolved_load(text, base=tmp_path, place="--ort-load")
        assert error.value.message.endswith("folder") is is_folder


def test_a_service_that_was_started_again_between_scrapes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(scrape(now_s=1500.0))
    (tmp_path / "b").write_text(scrape({"0.1": 500, "+Inf": 500}, now_s=1600.0))
    with pytest.raises(UsageError) as error:
        resolved("from:a+b", tmp_path)
    assert error.value.hint
    # The earlier one stands first.
    half = {bound: count // 2 for bound, count in BUCKETS.items()}
    (tmp_path / "b").write_text(scrape(half, now_s=1400.0))
    with pytest.raises(UsageError) as error:
        resolved("from:a+b:20ms", tmp_path)
    assert error.value.hint.endswith(": from:b+a:20ms")
    resolved("from:b+a:20ms", tmp_path)
    (tmp_path / "b").write_text(scrape(now_s=1500.0))
    with pytest.raises(UsageError) as error:
        resolved("from:a+b", tmp_path)
    assert "twice" in error.value.hint


def test_names_of_a_file_are_shown_escaped_and_cut(read) -> None:
    evil = 'model="\x1b[31m%s"'
    text = "".join(scrape(labels=evil % f"{i}{'x' * 500}", now_s=None) for i in range(40))
    with pytest.raises(UsageError) as error:
        read(text)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 600


def test_the_name_of_the_file_is_made_plain_in_that_of_the_load(read) -> None:
    spec = read(scrape(), name=f"{'a' * 80} @=<b>.prom")
    assert spec.origin is not None
    assert spec.origin.file == f"{'a' * 49}____b_.prom"


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode())))
def test_any_file_is_read_or_refused(content: bytes) -> None:
    _read_or_refused(content)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400), st.sampled_from([b"{", b"}", b'"', b"-", b"9", b"\n", b" "])
        ),
        max_size=4,
    )
)
def test_any_changed_scrape_is_read_or_refused(changes: list[tuple[int, bytes]]) -> None:
    content = bytearray(SCRAPE.encode())
    for at, byte in changes:
        content[at % len(content)] = byte[0]
    _read_or_refused(bytes(content))


def _read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "m").write_bytes(content)
        try:
            spec = resolved("from:m", Path(folder))
        except UsageError as error:
            refusal = error
        else:
            assert spec.rate_per_s is not None
            assert spec.rate_per_s > 0
            return
    assert refusal.hint


# -- where it stands -------------------------------------------------------------------------------


def written(text: str, base: Path) -> OptionText:
    return OptionText(texts=(text,), place="--ort-load", is_typed=True, base=base)


def test_the_option_reads_files_among_other_loads(tmp_path: Path) -> None:
    (tmp_path / "m.prom").write_text(scrape())
    loads = read_loads(written("offline,from:m.prom,from:m.prom", tmp_path))
    assert [load.partition("@")[0] for load in loads] == ["offline", "server:2.000:100ms:p99"]


def test_another_content_is_another_load(read) -> None:
    assert read(scrape()).text != read(scrape() + "up 1\n").text


def test_the_origin_is_announced(tmp_path: Path) -> None:
    (tmp_path / "m.prom").write_text(scrape())
    loads = read_loads(written("offline,from:m.prom", tmp_path))
    lines = announcements(load=loads, load_official=False)
    origin = parse_load(loads[1], place="").origin
    assert origin is not None
    assert [line for line in lines if f"SHA-256 {origin.digest}" in line] == [lines[-1]]
    assert len(lines) == 3


@pytest.mark.parametrize(
    "origin",
    ["", "m", "m:012", "m:0123456789abcdeg", "m m:0123456789abcdef", "m:0123456789abcdef:limit"],
)
def test_an_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(UsageError):
        parse_load(f"server:2:100ms@{origin}", place="here")


def test_a_load_without_a_rate_has_no_origin() -> None:
    for load in ("offline", "peak:p99:20ms", "server:2:ttft=2s"):
        with pytest.raises(UsageError):
            parse_load(f"{load}@m:0123456789abcdef", place="here")


def test_the_document_keeps_the_origin(read) -> None:
    load = Load(spec=read(scrape()), tests=(LoadTest(valid=True, rate_per_s=2.0),), answer=0)
    run = make_run([replace(make_result(), loads=(load,))])
    assert decode_run(encode_run(run), "here").cases[0].loads == (load,)
