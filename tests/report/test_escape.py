"""Names that try to be more than text, in every medium but HTML (see test_html)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.report import escape


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("resnet50", "resnet50"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\r\n and\ttabs", "two lines and tabs"),
        ("evil\u202etxt.exe", "evil\\u202etxt.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("broken\udce9name", "broken\\udce9name"),
        ("\x9b2J", "\\x9b2J"),
        ("Modell größer 模型 🚀", "Modell größer 模型 🚀"),
        ("tag\U000e0041", "tag\\U000e0041"),
    ],
)
def test_one_line_spells_out_what_is_not_visible(text: str, shown: str) -> None:
    assert escape.one_line(text) == shown


@given(st.text())
def test_one_line_is_printable_encodable_and_stable(text: str) -> None:
    shown = escape.one_line(text)
    assert all(char.isprintable() or not ord(char) < 0xA0 for char in shown)
    assert "\n" not in shown
    shown.encode("utf-8")
    assert escape.one_line(shown) == shown


def test_log_lines_keep_their_indent() -> None:
    assert escape.lines("a\n\tb\x07\n  c") == ["a", "    b\\x07", "  c"]


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "12 µs × 3 … 模"),
        ("latin-1", "12 µs × 3 ~ \\u6a21"),
        ("cp1252", "12 µs × 3 … \\u6a21"),
        ("ascii", "12 us x 3 ~ \\u6a21"),
        ("no-such-encoding", "12 us x 3 ~ \\u6a21"),
    ],
)
def test_encodable_falls_back_to_look_alikes(encoding: str, shown: str) -> None:
    assert escape.encodable("12 µs × 3 … 模", encoding) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mobilenet_v2", "mobilenet_v2"),
        ("_emphasis_", "&#95;emphasis&#95;"),
        ("a|b", "a\\|b"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("see [x](https://evil)", "see [x&#93;(https:&#47;/evil)"),
        ("![x](y)", "&#33;[x&#93;(y)"),
        ("[x] done", "&#91;x] done"),
        ("`code` **bold**", "&#96;code&#96; &#42;&#42;bold&#42;&#42;"),
        ("$x$", "&#36;x&#36;"),
        ("line\n| --- |", "line \\| --- \\|"),
        ("www.evil.example", "www&#46;evil.example"),
        ("&lt;", "&amp;lt;"),
        ("# 1", "&#35; 1"),
        ("- 1", "&#45; 1"),
        ("12. x", "&#49;2. x"),
        ("p50 12.4 ms [12.3, 12.4], x-1", "p50 12.4 ms [12.3, 12.4], x-1"),
    ],
)
def test_markdown_text_breaks_no_table_and_marks_nothing_up(text: str, shown: str) -> None:
    assert escape.markdown(text) == shown


TRICKY = st.text(alphabet="[]()!^:_*`~#-+=.|<>&$@/\\ \n0ax", max_size=12)


@given(st.text() | TRICKY, st.sampled_from(["x {} x", "- {}", "{}"]))
def test_markdown_renders_as_the_text_itself(text: str, around: str) -> None:
    """What a CommonMark renderer shows is exactly the text, and nothing but the text."""
    from markdown_it import MarkdownIt

    written = around.format(escape.markdown(text))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(written)
    leaves = [
        token
        for token in tokens
        if token.type
        not in {
            "paragraph_open",
            "paragraph_close",
            "bullet_list_open",
            "bullet_list_close",
            "list_item_open",
            "list_item_close",
        }
    ]
    assert [token.type for token in leaves] in ([], ["inline"])
    children = [child for token in leaves for child in token.children or []]
    assert {child.type for child in children} <= {"text", "text_special"}
    shown = "".join(child.content for child in children)
    expected = around.removeprefix("- ").format(escape.one_line(text))
    assert " ".join(shown.split()) == " ".join(expected.split())
    assert sum(token.type == "bullet_list_open" for token in tokens) == (around[0] == "-")


@given(TRICKY)
def test_markdown_stays_in_its_table_cell(text: str) -> None:
    from markdown_it import MarkdownIt

    table = f"| a | b |\n| --- | --- |\n| {escape.markdown(text)} | end |\n"
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(table)
    cells = [token.content for token in tokens if token.type == "inline"]
    assert cells[:2] == ["a", "b"]
    assert cells[3:] == ["end"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'=1"),
        ("\r=1", "'=1"),
        ("＝1+1", "'＝1+1"),
        ("a=1", "a=1"),
        ("x\x00y", "x\\x00y"),
    ],
)
def test_csv_text_is_no_formula(text: str, shown: str) -> None:
    assert escape.csv_text(text) == shown
