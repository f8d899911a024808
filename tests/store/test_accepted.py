"""The project's file of acceptances: every fault has its message, and people's own text stays."""

from __future__ import annotations

import errno
import os
from datetime import date
from pathlib import Path

import pytest

from pytest_ortbench.core.acceptance import AcceptedEntry
from pytest_ortbench.core.errors import OrtbenchError, UsageError
from pytest_ortbench.store import accepted
from pytest_ortbench.store.accepted import accept, parse_day, parse_share, read_accepted

ONE = AcceptedEntry(
    case="net/native/cpu/b1",
    metric="model_size",
    reason='more "classes", größer',
    until=date(2027, 1, 31),
    worse_by=0.22,
)
TWO = AcceptedEntry(
    case="old*", metric="removed", reason="replaced\\gone", model="0123456789abcdef"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ortbench-accepted.toml"


def plain(path: Path) -> list[AcceptedEntry]:
    from dataclasses import replace

    return [replace(entry, line=0) for entry in read_accepted(path)]


def test_what_is_written_is_read(path: Path):
    assert read_accepted(path) == ()
    assert accept(path, [ONE]) == []
    assert accept(path, [TWO]) == []
    assert plain(path) == [ONE, TWO]


def test_the_same_case_and_metric_replaces_its_entry_and_the_rest_stays(path: Path):
    path.write_text(
        """\
# Kept.

[[accepted]]  # the first
case = "a"
reason = "one"  # inside

# Above the second.
[[accepted]]
case = "b"
metric = "latency"
reason = "two"

# Above the third.
[[accepted]]
case = "b"
reason = "three"
# The end.
"""
    )
    again = AcceptedEntry(case="b", metric="latency", reason="two again", worse_by=0.1)
    (replaced,) = accept(path, [again])
    assert replaced.reason == "two"
    assert plain(path) == [
        AcceptedEntry(case="a", reason="one"),
        again,
        AcceptedEntry(case="b", reason="three"),
    ]
    assert path.read_text() == (
        """\
# Kept.

[[accepted]]  # the first
case = "a"
reason = "one"  # inside

# Above the second.
[[accepted]]
case = "b"
metric = "latency"
worse_by = "10%"
reason = "two again"

# Above the third.
[[accepted]]
case = "b"
reason = "three"
# The end.
"""
    )


def test_line_ends_of_windows_and_a_byte_order_mark_are_read_and_line_ends_kept(path: Path):
    path.write_bytes(b'\xef\xbb\xbf[[accepted]]\r\ncase = "a"\r\nreason = "one"\r\n')
    accept(path, [TWO])
    assert plain(path) == [AcceptedEntry(case="a", reason="one"), TWO]
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 6


def test_a_file_without_a_last_line_end_and_an_empty_one_are_written_to(path: Path):
    path.write_text('[[accepted]]\ncase = "a"\nreason = "one"')
    accept(path, [TWO])
    assert plain(path) == [AcceptedEntry(case="a", reason="one"), TWO]
    path.write_text("")
    assert read_accepted(path) == ()
    accept(path, [ONE])
    assert plain(path) == [ONE]


def test_every_whole_percent_reads_back(path: Path):
    entries = [
        AcceptedEntry(case=f"c{number}", reason="r", worse_by=number / 100) for number in range(500)
    ]
    accept(path, entries[:100])
    assert plain(path) == entries[:100]
    for entry in entries[100::37]:
        accept(path, [entry])
        assert plain(path)[-1] == entry


@pytest.mark.parametrize("reason", ["[[accepted]]", 'a """ b', "''' #", "tab\there", "ü…\u2028x"])
def test_any_reason_reads_back(path: Path, reason: str):
    accept(path, [AcceptedEntry(case="a", reason=reason), TWO])
    accept(path, [AcceptedEntry(case="a", reason=reason, metric="latency")])
    accept(path, [AcceptedEntry(case="a", reason=f"{reason}!")])
    assert [entry.reason for entry in plain(path)] == [f"{reason}!", TWO.reason, reason]


def test_a_text_over_several_lines_is_replaced_whole(path: Path):
    path.write_text(
        '[[accepted]]\ncase = "a"\nreason = """\nfirst\n[[accepted]]\nlast"""\n\n'
        '[[accepted]]\ncase = "b"\nreason = "two"\n'
    )
    accept(path, [AcceptedEntry(case="a", reason="new")])
    assert plain(path) == [
        AcceptedEntry(case="a", reason="new"),
        AcceptedEntry(case="b", reason="two"),
    ]


def test_entries_in_one_line_are_not_changed(path: Path):
    path.write_text('accepted = [{case = "a", reason = "one"}]\n')
    before = path.read_text()
    assert plain(path) == [AcceptedEntry(case="a", reason="one")]
    with pytest.raises(OrtbenchError):
        accept(path, [TWO])
    assert path.read_text() == before


def test_entries_in_one_array_are_read_and_left_as_they_are(path: Path):
    text = 'accepted = [{ case = "a", reason = "one" }]\n'
    path.write_text(text)
    assert plain(path) == [AcceptedEntry(case="a", reason="one")]
    with pytest.raises(OrtbenchError) as refused:
        accept(path, [TWO])
    assert refused.value.place == str(path)
    assert "[[accepted]]" in refused.value.hint
    assert path.read_text() == text


HEAD = '[[accepted]]\ncase = "a"\nreason = "one"\n'


@pytest.mark.parametrize(
    ("text", "message", "hint", "line"),
    [
        ("[[accepted]\n", "the file is not valid TOML", "[[accepted]]", ""),
        ("[accepted]\n", "'accepted' is not a list of tables", "double brackets", ""),
        ("accepted = 3\n", "'accepted' is not a list of tables", "double brackets", ""),
        ("accepted = [1, 2]\n", "'accepted' is not a list of tables", "double brackets", ""),
        ('case = "a"\n', "'case' is not known", "[[accepted]] in a line above", ""),
        ("[[acepted]]\n", "'acepted' is not known", "Did you mean 'accepted'?", ""),
        ('[[accepted]]\nreason = "x"\n', "the entry has no 'case'", "the id of a case", "line 1"),
        ('\n[[accepted]]\ncase = "x"\n', "has no 'reason'", "Write why", "line 2"),
        (HEAD + '[[accepted]]\ncase = "b"\nreason = " "\n', "'reason' is empty", "Write why", "4"),
        (HEAD + 'reson = "x"\n', "'reson' is not a key", "Did you mean 'reason'?", "line 1"),
        (HEAD + 'metric = "latenci"\n', "'latenci' is not a metric", "'latency'?", "line 1"),
        (HEAD + "metric = 3\n", "'metric' is 3", 'metric = "latency"', "line 1"),
        (HEAD + 'until = "31.01.2027"\n', "'31.01.2027' is not a date", "2027-01-31", "line 1"),
        (HEAD + 'until = "2026-02-30"\n', "not a day of the calendar", "2027-01-31", "line 1"),
        (HEAD + "until = 2027-01-31T00:00:00\n", "'until' is 2027", "until = 2027-01-31", "1"),
        (HEAD + "until = 2028-02-29T06:00:00\n", "'until' is 2028", "until = 2028-02-29", "1"),
        (HEAD + "until = 2027\n", "'until' is 2027", "until = 2027-01-31", "line 1"),
        (HEAD + "worse_by = 8\n", "'worse_by' is 8", 'worse_by = "8%"', "line 1"),
        (HEAD + 'worse_by = "8"\n', "'8' is not a percentage", 'worse_by = "8%"', "'worse_by'"),
        (HEAD + "worse_by = 12.5\n", "'worse_by' is 12.5", 'worse_by = "12.5%"', "line 1"),
        (HEAD + "worse_by = 0.1\n", "'worse_by' is 0.1", 'worse_by = "8%"', "line 1"),
        (HEAD + 'worse_by = "12"\n', "'12' is not a percentage", 'worse_by = "12%"', "'worse_by'"),
        (HEAD + 'worse_by = "-8%"\n', "'-8%' is below 0", 'worse_by = "8%"', "'worse_by'"),
        (HEAD + 'model = "xyz"\n', "not the start of a SHA-256", "hexadecimal", "line 1"),
        (HEAD + "model = 3\n", "'model' is 3", 'model = "3f2a9c01"', "line 1"),
        (HEAD + "model = 40718293\n", "'model' is 4", 'model = "40718293"', "line 1"),
        (HEAD + 'model = "ABCDEF12"\n', "'ABCDEF12'", "lower case", "line 1"),
        (HEAD + HEAD, "in line 1", "Delete one", "line 4"),
        (HEAD + "until = 2026-02-30\n", "the file is not valid TOML", "", ""),
        ("a = " + "[" * 5000, "", "[[accepted]]", ""),
    ],
)
def test_each_fault_names_its_place_and_the_next_step(
    path: Path, text: str, message: str, hint: str, line: str
):
    path.write_text(text)
    for call in (lambda: read_accepted(path), lambda: accept(path, [TWO])):
        with pytest.raises(UsageError) as raised:
            call()
        assert message in raised.value.message
        assert hint in raised.value.hint
        assert str(path) in raised.value.place
        assert line in raised.value.place
        assert path.read_text() == text


def test_a_file_that_is_not_utf_8_a_folder_and_one_that_is_not_there(path: Path):
    path.write_bytes(b'[[accepted]]\ncase = "\xff"\n')
    with pytest.raises(UsageError) as raised:
        read_accepted(path)
    assert raised.value.place == f"{path}, line 2"
    assert "UTF-8" in raised.value.hint
    path.unlink()
    path.mkdir()
    for call in (lambda: read_accepted(path), lambda: accept(path, [ONE])):
        with pytest.raises(UsageError, match="folder"):
            call()
    with pytest.raises(UsageError, match="does not exist"):
        read_accepted(path / "none.toml", must_exist=True)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('case = "net"\nprovider = "cuda"', '"net/*/cuda/*"'),
        ('case = "net"\nprecision = "fp16"', '"net/fp16/*"'),
        ('case = ["net", "detector"]', "[[accepted]]"),
    ],
)
def test_an_entry_that_means_several_cases_is_told_how(path: Path, line: str, told: str):
    path.write_text(f'[[accepted]]\n{line}\nreason = "r"\n')
    with pytest.raises(UsageError) as raised:
        read_accepted(path)
    assert told in raised.value.hint


def test_a_file_that_may_not_be_written_stays_as_it_is(path: Path):
    path.write_text(HEAD)
    path.chmod(0o444)
    with pytest.raises(OrtbenchError) as raised:
        accept(path, [ONE])
    assert "read-only" in raised.value.message
    assert path.read_text() == HEAD


@pytest.mark.parametrize(
    ("number", "is_folder_named"), [(errno.EACCES, True), (errno.ENOSPC, False)]
)
def test_a_refusal_of_the_folder_is_told_from_a_full_disk(
    path: Path, number: int, is_folder_named: bool, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(accepted, "replace_file", refuse)
    with pytest.raises(OrtbenchError) as raised:
        accept(path, [ONE])
    assert os.strerror(number) in raised.value.message
    assert (str(path.parent) in raised.value.hint) == is_folder_named


@pytest.mark.parametrize(
    "written", ["", "today", "2026-2-3", "26-02-03", "2026-13-01", "٢٠٢٦-٠١-٠١"]
)
def test_a_day_is_written_in_one_way(written: str):
    with pytest.raises(UsageError, match="2027-01-31"):
        parse_day(written, place="--until")
    assert parse_day("2028-02-29", place="--until") == date(2028, 2, 29)


@pytest.mark.parametrize("written", ["", "8", "nan%", "inf%", "%", "1e999%", "8 MB"])
def test_a_share_is_finite(written: str):
    with pytest.raises(UsageError) as raised:
        parse_share(written, place="--worse-by")
    assert raised.value.place == "--worse-by"
    assert parse_share("8 %", place="--worse-by") == pytest.approx(0.08)
