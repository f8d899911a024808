from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.schema.layout import find_nonfinite, lay_out, one_line_json, to_utf8

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=4), children, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_the_text_means_the_value(value):
    assert json.loads(lay_out(value)) == value
    assert json.loads(one_line_json(value)) == value
    assert "\n" not in one_line_json(value)


def test_arrays_of_plain_values_take_one_line_and_nesting_is_indented():
    value = {"durations_ns": list(range(1000)), "deep": [{"a": 1, "b": {}}, {"c": [1, [2]]}]}
    lines = lay_out(value).splitlines()
    assert lines[0] == "{"
    assert lines[1] == '  "durations_ns": [' + ", ".join(map(str, range(1000))) + "],"
    assert lines[2:5] == ['  "deep": [', '    {"a": 1, "b": {}},', "    {"]
    assert lines[-1] == "}"


def test_long_objects_are_spread_over_lines():
    value = {"a": "x" * 60, "b": "y" * 60}
    assert lay_out(value) == "{\n" + f'  "a": "{"x" * 60}",\n  "b": "{"y" * 60}"\n' + "}"


def test_nonfinite_numbers_are_found_with_their_place():
    value = {"cases": ({"wall_s": math.nan}, {"energy": [1, 2.0, -math.inf]})}
    assert list(find_nonfinite(value)) == [
        "$.cases[0].wall_s is NaN",
        "$.cases[1].energy[2] is infinite",
    ]


def test_nonfinite_numbers_are_never_written():
    with pytest.raises(ValueError, match="Out of range float"):
        lay_out([math.nan])


def test_half_characters_are_written_out():
    value = {"p\udce9": ['a\udcff"\\', 1, None]}
    assert json.loads(to_utf8(one_line_json(value))) == {"p\\udce9": ['a\\udcff"\\', 1, None]}


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_becomes_utf8(text):
    shown = text.encode("utf-8", "backslashreplace").decode()
    assert json.loads(to_utf8(lay_out([text]))) == [shown]
