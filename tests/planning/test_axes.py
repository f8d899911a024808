"""Reading lists as people type them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.axes import (
    parse_choices,
    parse_dims,
    parse_exporter,
    parse_int,
    parse_int_list,
    parse_settings,
    split_list,
)
from tests.refused import refused

PLACE = "--ort-test"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        (" a , b ", ["a", "b"]),
        ("onnxruntime-gpu[cuda,cudnn],b", ["onnxruntime-gpu[cuda,cudnn]", "b"]),
        ('a={"GPU":{"x":[1,2]}},b', ['a={"GPU":{"x":[1,2]}}', "b"]),
    ],
)
def test_splits_outside_brackets(text: str, items: list[str]) -> None:
    assert split_list(text, place=PLACE) == items


def test_repeated_option_is_one_list() -> None:
    assert split_list(("a,b", "c"), place=PLACE) == ["a", "b", "c"]


def test_a_comma_in_front_of_no_item_does_not_split() -> None:
    items = split_list(
        "ort>=1.2,<1.3,current", place=PLACE, starts_item=lambda rest: rest[0].isalpha()
    )
    assert items == ["ort>=1.2,<1.3", "current"]


@pytest.mark.parametrize("text", ["", " ", ",", "a,", ",a", "a,,b", "a, ,b"])
@pytest.mark.parametrize("starts_item", [None, str.isspace])
def test_an_empty_item_is_refused(text: str, starts_item: Callable[[str], bool] | None) -> None:
    with refused(UsageError, "comma" if text.strip() else "empty", place=PLACE):
        split_list(text, place=PLACE, starts_item=starts_item)


@pytest.mark.parametrize(
    ("text", "brackets"),
    [
        ("a[b", ("'['", "']'")),
        ("a]b", ("']'", "")),
        ("a[b)", ("'['", "']'")),
        ("(a,b]", ("'('", "')'")),
        ("(a[b)", ("'['", "']'")),
    ],
)
def test_brackets_must_match(text: str, brackets: tuple[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        split_list(text, place=PLACE)
    assert caught.value.place == PLACE
    assert repr(text) in caught.value.message
    wrong, needed = brackets
    assert wrong in caught.value.message
    assert needed in caught.value.hint


@given(st.lists(st.text(alphabet="ab[]c:=. ", min_size=1).filter(str.strip), min_size=1))
def test_splitting_what_was_joined_gives_it_back(words: list[str]) -> None:
    items = [word.strip().replace("[", "").replace("]", "") + "[x,y]" for word in words]
    assert split_list(",".join(items), place=PLACE) == [item.strip() for item in items]


def test_integers_in_order_each_once() -> None:
    assert parse_int_list(("8,1", "8,+4"), place=PLACE) == (8, 1, 4)


@pytest.mark.parametrize(
    "text", ["1;8", "x", "1.5", "-x", "1 8", "²", "١", "0x10", "1e3", "9" * 40]
)
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with refused(UsageError, "whole number", place=PLACE, hint="Write "):
        parse_int_list(text, place=PLACE)


def test_a_number_below_the_least_is_refused() -> None:
    with refused(UsageError, "0 is too small", place=PLACE):
        parse_int("0", place=PLACE)
    assert parse_int("0", place=PLACE, least=0) == 0


@given(st.lists(st.integers(min_value=1, max_value=2**31 - 1), min_size=1))
def test_integers_survive_their_text(numbers: list[int]) -> None:
    text = ",".join(map(str, numbers))
    assert parse_int_list(text, place=PLACE) == tuple(dict.fromkeys(numbers))


def test_choices_name_the_nearest_known_word() -> None:
    assert parse_choices("all,basic,all", ("basic", "all"), place=PLACE) == ("all", "basic")
    with refused(UsageError, "'basik'", "level", place=PLACE, hint="'basic'"):
        parse_choices("basik", ("basic", "all"), place=PLACE, what="level")


@pytest.mark.parametrize(
    ("texts", "dims"),
    [
        ("seq:128", {"seq": (128,)}),
        ("seq:128:512,hw:640", {"seq": (128, 512), "hw": (640,)}),
        (("seq:128", "seq:512:128"), {"seq": (128, 512)}),
        ("past_sequence_length + 1:17", {"past_sequence_length + 1": (17,)}),
        ("onnx::Gather_3:4", {"onnx::Gather_3": (4,)}),
        ("past:0", {"past": (0,)}),
        (" seq : 1 : 2 ", {"seq": (1, 2)}),
    ],
)
def test_dims(texts: str | tuple[str, ...], dims: dict[str, tuple[int, ...]]) -> None:
    assert parse_dims(texts, place=PLACE) == dims


@pytest.mark.parametrize("text", ["seq", "seq:", ":128", "seq:x", "seq:128:x", "seq=128"])
def test_dims_without_name_or_size_are_refused(text: str) -> None:
    with refused(UsageError, repr(text), place=PLACE, hint="seq:128"):
        parse_dims(text, place=PLACE)


@pytest.mark.parametrize(
    ("text", "hint"), [("128", "NAME:128"), ("1,3,512,384", "height:512,width:384")]
)
def test_sizes_without_names_are_refused_as_a_whole(text: str, hint: str) -> None:
    with refused(UsageError, repr(text), place=PLACE, hint=hint):
        parse_dims(text, place=PLACE)


@pytest.mark.parametrize("text", ["on off", "on; off"])
def test_values_without_commas_are_written_with_them_where_several_are_taken(text: str) -> None:
    with refused(UsageError, repr(text), place=PLACE, hint="on,off"):
        parse_choices(text, ("on", "off"), place=PLACE)
    with refused(UsageError, repr(text), place=PLACE, hint="e.g. on"):
        parse_choices(text, ("on", "off"), place=PLACE, several=False)


@pytest.mark.parametrize(
    ("text", "setting"), [("17", "opset=17"), ("1x3x224x224", "inputs=1x3x224x224")]
)
def test_what_a_number_is_for_an_exporter_is_told(text: str, setting: str) -> None:
    with refused(UsageError, repr(text), place=PLACE, hint=setting):
        parse_exporter(text, place=PLACE)
    assert "=".join(*parse_exporter(setting, place=PLACE).items()) == setting


def test_dims_with_an_equals_sign_keep_their_sizes() -> None:
    with refused(UsageError, "'seq=64'", place=PLACE, hint="seq:64"):
        parse_dims("seq=64", place=PLACE)


@pytest.mark.parametrize("text", ["seq:1.5", "seq:-1.5", "seq:128:2x"])
def test_dims_with_a_size_that_is_no_number_name_the_dimension(text: str) -> None:
    with refused(UsageError, "whole number", place=f"{PLACE}, dimension 'seq'"):
        parse_dims(text, place=PLACE)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,8}", fullmatch=True),
        st.lists(st.integers(0, 10**6), min_size=1, unique=True),
        min_size=1,
    )
)
def test_dims_survive_their_text(dims: dict[str, list[int]]) -> None:
    text = ",".join(f"{name}:{':'.join(map(str, sizes))}" for name, sizes in dims.items())
    assert parse_dims(text, place=PLACE) == {name: tuple(sizes) for name, sizes in dims.items()}


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ("a.b=1", {"a.b": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        (("a=1", "b=2"), {"a": "1", "b": "2"}),
        ("session.affinities=1,2;3,4,b=x", {"session.affinities": "1,2;3,4", "b": "x"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=", {"a": ""}),
        ('openvino.load_config={"CPU":{"a":"1","b":"2"}}', None),
    ],
)
def test_settings(texts: str | tuple[str, ...], settings: dict[str, str] | None) -> None:
    expected = settings or {"openvino.load_config": '{"CPU":{"a":"1","b":"2"}}'}
    assert parse_settings(texts, place=PLACE, example="a=1") == expected


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("seq:1-4", (1, 2, 3, 4)),
        ("seq:16:1-3:64", (16, 1, 2, 3, 64)),
        ("seq:5-5", (5,)),
        ("seq:7", (7,)),
    ],
)
def test_ranges_of_dims(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_dims(text, place="here", ranges=True) == {"seq": sizes}


def test_a_range_that_runs_backwards_or_too_far_says_so() -> None:
    with refused(UsageError, "300-1", "'seq:300-1'", place=PLACE, hint="seq:1-300"):
        parse_dims("seq:300-1", place=PLACE, ranges=True)
    with refused(UsageError, "1-10001", "10001 sizes", place=PLACE, hint="hw:128:512"):
        parse_dims("hw:1-10001", place=PLACE, ranges=True)
    assert len(parse_dims("seq:1-10000", place=PLACE, ranges=True)["seq"]) == 10_000


def test_a_negative_number_is_too_small() -> None:
    with refused(UsageError, "-1 is too small", place=PLACE, hint="1,8"):
        parse_int_list("-1", place=PLACE)
    with refused(UsageError, "-5 is too small", place=f"{PLACE}, dimension 'seq'"):
        parse_dims("seq:-5", place=PLACE)
    with refused(UsageError, "'--1'", "whole number", place=PLACE):
        parse_int_list("--1", place=PLACE)


@pytest.mark.parametrize("text", ["seq:4-1", "seq:1-", "seq:a-b"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_dims(text, place="here", ranges=True)


def test_settings_refuse_what_is_no_pair_and_two_values() -> None:
    with refused(UsageError, "'abc'", place=PLACE, hint="abc=VALUE"):
        parse_settings("abc", place=PLACE, example="a=1")
    with refused(UsageError, "'=1'", place=PLACE, hint="a=1"):
        parse_settings("=1", place=PLACE, example="a=1")
    with refused(UsageError, "'a'", "'1'", "'2'", place=PLACE):
        parse_settings(("a=1", "a=2"), place=PLACE, example="a=1")
    assert parse_settings(("a=1", "a=1"), place=PLACE, example="a=1") == {"a": "1"}


@pytest.mark.parametrize("written", ["inputs=1,3,224,224", "inputs=1x3,2x4:int64"])
def test_sizes_for_an_exporter_with_commas_get_the_form_with_x(written: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_exporter(written, place=PLACE)
    step = raised.value.hint.rpartition("--ort-exporter=")[2].strip("'")
    assert parse_exporter(step, place=PLACE).keys() == {"inputs"}
