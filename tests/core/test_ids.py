"""How ids are spelt, and which of them a pattern is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.ids import id_fits, model_of, model_part


@pytest.mark.parametrize(
    "name", ["resnet50", "models/det/model", "../x/model", "größe", "a_b-c.d+e"]
)
def test_what_ids_can_hold_is_spelt_as_it_is(name: str) -> None:
    assert model_part(name) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [("a b", "a_b"), ("m(1)", "m_1_"), ("a b", "a\tb"), ("a/b c", "a_b/c"), ("a\\b", "a/b"),
     ("a b", model_part("a b")), ("\udcff", "\udcfe")],
)  # fmt: skip
def test_two_names_never_have_one_spelling(one: str, other: str) -> None:
    assert model_part(one) != model_part(other)


@given(st.text(max_size=12), st.text(max_size=12))
def test_spellings_are_as_different_as_names(one: str, other: str) -> None:
    assert (model_part(one) == model_part(other)) == (one == other)
    assert not set(model_part(one)) & set("=@| \t\n()[]'\"\\")


@pytest.mark.parametrize(
    ("case_id", "model"),
    [
        ("net/native/cpu/b1", "net"),
        ("a/b/net/native/cpu/b1/seq:128/threads:4", "a/b/net"),
        ("a/native/cpu/b1/native/cpu/b2", "a/native/cpu/b1"),
        ("x:1/native/cpu:0/b1", "x:1"),
        ("no id", "no id"),
    ],
)
def test_the_model_of_an_id(case_id: str, model: str) -> None:
    assert model_of(case_id) == model


DET, DATA, ROOT = "det/model/native/cpu/b1", "data/model/native/cpu/b1", "model/native/cpu/b1"


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    [
        ("", {DET, DATA, ROOT}),
        ("model", {DET, DATA, ROOT}),
        ("det", {DET}),
        ("det/model", {DET}),
        # It begins where a part does.
        ("a/model", set()),
        ("cpu/b1", {DET, DATA, ROOT}),
        ("/cpu/", {DET, DATA, ROOT}),
        # A whole id means that case, though it is a part of others.
        (ROOT, {ROOT}),
        (DET, {DET}),
        # A glob with a slash is compared with the whole.
        ("model/*", {ROOT}),
        ("*/model/*", {DET, DATA}),
        ("d*/model/*", {DET, DATA}),
        # One without may begin at any folder of the model's name, and at no other part.
        ("mod*", {DET, DATA, ROOT}),
        ("det*", {DET}),
        ("nat*", set()),
    ],
)
def test_what_a_pattern_is_about(pattern: str, fitting: set[str]) -> None:
    assert {case_id for case_id in (DET, DATA, ROOT) if id_fits(case_id, pattern)} == fitting


def test_a_whole_id_is_about_further_axes_too_and_about_no_model_in_a_folder() -> None:
    assert id_fits("net/native/cpu/b1/threads:4", "net/native/cpu/b1")
    assert not id_fits("nets/net/native/cpu/b1", "net/native/cpu/b1")


def test_a_runtime_behind_the_id_makes_no_part_of_it_the_models() -> None:
    assert model_of("a/net/native/cpu/b1+onnxruntime-1.20.1") == "a/net"
    assert not id_fits("a/net/native/cpu/b1+onnxruntime-1.20.1", "cpu*")
