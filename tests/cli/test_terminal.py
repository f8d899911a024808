from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.cli.terminal import ReaderGone, columns, inert, say, table, tell, width

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


SENTENCE = "net: ship int8-static/cpu: fastest at batch 1 and 8, and some more words to be wrapped"


def test_a_file_gets_whole_sentences_and_tables_of_one_width(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (columns(), width()) == (None, 100)
    tell([SENTENCE, "second"])
    assert capsys.readouterr().out == f"{SENTENCE}\nsecond\n"


def test_columns_are_obeyed_where_output_is_redirected(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    assert (columns(), width()) == (40, 40)
    tell([SENTENCE, "second"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "net: ship int8-static/cpu: fastest at",
        "batch 1 and 8, and some more words to be",
        "wrapped",
        "second",
    ]


@pytest.mark.parametrize("said", ["", "0", "-3", "wide"])
def test_columns_that_are_no_number_are_not_obeyed(said, monkeypatch):
    monkeypatch.setenv("COLUMNS", said)
    assert (columns(), width()) == (None, 100)
