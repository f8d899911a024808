"""Which cases and which findings an entry is about."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.acceptance import AcceptedEntry, metric_name
from pytest_ortbench.core.errors import UsageError


def entry(case: str = "net", metric: str = "") -> AcceptedEntry:
    return AcceptedEntry(case=case, metric=metric, reason="why")


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("net/native/cpu/b1", True),
        ("net", True),
        ("net/native", True),
        ("native/cpu", True),
        ("b1", True),
        ("net/native/cpu/b1+nightly", True),
        ("net/*", True),
        ("*/cpu/*", True),
        ("ne", False),
        ("native/cpu/b", False),
        ("net/native/cpu/b1+other", False),
        ("NET", False),
    ],
)
def test_whole_parts_of_an_id_or_a_glob_fit(pattern: str, fits: bool):
    assert entry(pattern).fits("net/native/cpu/b1", "nightly") is fits


def test_a_part_of_a_name_never_stands_for_another_case():
    assert not entry("net/native/cpu/b1").fits("net/native/cpu/b16", "current")
    assert not entry("net").fits("resnet/native/cpu/b1", "current")
    assert not entry("net").fits("net2/native/cpu/b1", "current")


def test_a_model_in_a_folder_is_named_by_its_path_or_its_last_part():
    assert entry("nets/old").fits("nets/old/native/cpu/b1", "current")
    assert entry("old").fits("nets/old/native/cpu/b1", "current")


def test_an_id_written_whole_means_that_case_alone():
    ids = ("net/native/cpu/b1", "net/native/cpu/b1/threads:2")
    assert entry(ids[0]).fits(ids[0], "current", ids)
    assert not entry(ids[0]).fits(ids[1], "current", ids)


@pytest.mark.parametrize(
    ("metric", "about", "is_meant"),
    [
        ("", "removed", True),
        ("latency", "latency", True),
        ("latency", "latency_p50", True),
        ("latency", "peak_rss", False),
        ("peak_rss", "peak_rss", True),
        ("accuracy", "accuracy", True),
        ("accuracy", "answers", True),
        ("accuracy", "accuracy_cosine", True),
        ("accuracy", "latency", False),
        ("accuracy_cosine", "accuracy", False),
        ("answers", "accuracy", False),
        ("removed", "status", False),
    ],
)
def test_a_metric_and_what_belongs_to_it_is_meant(metric: str, about: str, is_meant: bool):
    assert entry(metric=metric).is_about(about) is is_meant


def test_names_of_metrics():
    assert metric_name("latency_p50", place="--metric") == "latency"
    assert metric_name("energy_per_inference", place="--metric") == "energy_per_inference"
    assert metric_name("removed", place="--metric") == "removed"
    with pytest.raises(UsageError) as raised:
        metric_name("latenci", place="--metric")
    assert raised.value.place == "--metric"
    assert "Did you mean 'latency'?" in raised.value.hint


def test_names_in_any_script_fit():
    assert entry("größe").fits("netze/größe/native/cpu/b1", "current")
    assert entry("模型*").fits("模型一/native/cpu/b1", "current")
    assert not entry("groesse").fits("netze/größe/native/cpu/b1", "current")


def test_the_numbers_of_two_sides_are_what_is_said_of_their_answers():
    assert metric_name("sides_sqnr", place="--metric") == "answers"
    assert entry(metric="answers").is_about("sides_agreement")
