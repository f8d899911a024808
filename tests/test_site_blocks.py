"""Commands that the documentation shows are run, and print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import site_blocks

PAGE = """# Page

<!-- file: a/b.txt -->
```text
words
```

<!-- run: from="two" to="four" -->
```console
$ cat a/b.txt && printf '1\\n2 two\\n3\\n4 four\\n'
old
```

<!-- run: exit=3 -->
```console
$ exit \\
    3
```
"""


@pytest.mark.heavy
@pytest.mark.parametrize("name", site_blocks.marked_pages())
def test_a_page_shows_what_its_commands_print(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    text = (site_blocks.DOCS / name).read_text(encoding="utf-8")
    faults = [
        fault
        for step, ran in site_blocks.run_page(text, folder)
        for fault in site_blocks.differences(step, ran)
    ]
    assert not faults, "\n\n".join(faults)


@pytest.mark.live
def test_a_page_is_run_cut_and_written(tmp_path: Path) -> None:
    ran = site_blocks.run_page(PAGE, tmp_path)
    written = site_blocks.written(PAGE, ran)
    assert "four\\n'\n…\n2 two\n3\n…\n```\n" in written
    assert "old" not in written
    assert "$ exit \\\n    3\n```\n" in written
    assert [list(site_blocks.differences(*run)) for run in ran] == [[], []]
    assert (tmp_path / "a" / "b.txt").read_text() == "words\n"


def test_every_mark_of_every_page_is_understood() -> None:
    for path in sorted(site_blocks.DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        steps = site_blocks.steps_of(text)
        assert len(steps) == sum(
            line.startswith(("<!-- ready", "<!-- file", "<!-- run")) for line in text.splitlines()
        ), path
        for step in steps:
            if step.kind == "ready":
                assert set(step.text.split()) <= set(site_blocks.READY), path
            elif step.kind == "run":
                assert set(step.settings) <= {"exit", "from", "to", "drop", "compare"}, path
                assert site_blocks.commands_of(step.block), path


def test_what_a_run_decides_is_read() -> None:
    output = """
  case           p50  95 % interval  status
  net/cpu/b1  115 µs  [113, 117]     CPU-SHARE
  cpu/b8/dims:seq:128  1.2 ms
gate net/cpu/b1 against git:main: slower  ×1.26 [1.22, 1.28]  8 launches
FAILED benchmarks/test_model.py::test_model[net/cpu/b1] - AssertionError: latency
=== 1 failed, 2 passed, 1 warning in 3.21s ===
net: only net/cpu/b1 can be ranked
"""
    assert site_blocks.decided(output) == [
        "net/cpu/b1",
        "cpu/b8/dims:seq:128",
        "gate net/cpu/b1 git:main slower",
        "FAILED benchmarks/test_model.py::test_model[net/cpu/b1]",
        "1 failed, 2 passed",
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "is_same"),
    [
        ("took 1.5 ms, 20 % more", "took 900 µs, 3 % more", True),
        ("3 machines,  4.5e3 EUR", "4 machines, 12 EUR", True),
        ("took 1.5 ms", "needs 1.5 ms", False),
        ("b1", "b8", False),
    ],
)
def test_numbers_are_masked_and_words_are_not(shown: str, printed: str, is_same: bool) -> None:
    assert (site_blocks.masked(shown) == site_blocks.masked(printed)) is is_same


def test_a_part_is_left_out_up_to_the_next_empty_line() -> None:
    shown = site_blocks.Shown("a", "1\nnumbers 2\n3\n\n4\n")
    assert site_blocks.cut(shown, {"drop": "numbers"}).output == "1\n…\n\n4\n"


def test_another_status_or_row_is_a_difference() -> None:
    (step,) = site_blocks.steps_of("<!-- run -->\n```console\n$ a\n  net/cpu/b1  1 ms\n```\n")
    same = site_blocks.Shown("a", "  net/cpu/b1  2 ms\n")
    assert not list(site_blocks.differences(step, [same]))
    assert list(site_blocks.differences(step, [site_blocks.Shown("a", same.output, 1)]))
    assert list(site_blocks.differences(step, [site_blocks.Shown("a", "  net/cpu/b8  2 ms\n")]))
