from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.cli.terminal import ReaderGone, inert, say, table

#: Control and invisible formatting characters, half characters, line and paragraph separators.
CONTROLLING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
def test_no_control_character_is_left_but_line_ends(text):
    shown = inert(text)
    assert not {unicodedata.category(each) for each in shown if each != "\n"} & CONTROLLING
    assert inert(shown) == shown


def test_escape_sequences_are_spelt_out():
    assert inert("a\x1b[31mred\x07\nb\u202e") == "a\\x1b[31mred\\x07\nb\\u202e"


def test_only_colours_are_let_through_and_only_where_asked():
    text = "\x1b[1;31mred\x1b[0m \x1b[2J\x1b]0;title\x07"
    assert inert(text, styled=True) == "\x1b[1;31mred\x1b[0m \\x1b[2J\\x1b]0;title\\x07"


def test_empty_lines_and_the_last_one_are_kept():
    assert inert("a\n\nb\n") == "a\n\nb\n"


def test_a_stream_that_nobody_reads_is_told_apart():
    class Gone(io.StringIO):
        encoding = "utf-8"

        def write(self, _):
            raise BrokenPipeError

    with pytest.raises(ReaderGone):
        say("x", to=Gone())


def test_columns_line_up():
    text = table([["cpu", "runs"], ["openvino", "f\x1bails"]], header=["alias", "state"], indent=2)
    assert text.splitlines() == [
        "  alias     state",
        "  --------  ---------",
        "  cpu       runs",
        "  openvino  f\\x1bails",
    ]
    assert table([]) == ""
