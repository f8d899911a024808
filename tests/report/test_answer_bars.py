"""Bars in the terminal: lengths are times, what is not ranked is grey, and no line breaks."""

from __future__ import annotations

import pytest

from pytest_ortbench.analysis.certainty import Certainty
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.report.answer_bars import bar_lines
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_case, make_result, make_run


def _run(*results: CaseResult, width: int = 100, encoding: str = "utf-8") -> list[str]:
    return bar_lines(shown_run(make_run(results)), width=width, encoding=encoding)


def _threads(threads: int, median_ns: int) -> CaseResult:
    return make_result(case=make_case(knobs={"threads": str(threads)}), median_ns=median_ns)


def _inked(line: str, ink: str = "█▓░·») ") -> int:
    return sum(line.count(character) for character in ink.strip(" )"))


def test_a_bar_is_as_long_as_its_time() -> None:
    lines = _run(_threads(1, 10_000_000), _threads(2, 20_000_000), _threads(4, 40_000_000))
    lengths = {line.split()[0].rpartition(":")[2]: _inked(line) for line in lines[1:4]}
    assert lengths["4"] == pytest.approx(40, abs=2)
    assert lengths["2"] == pytest.approx(20, abs=2)
    assert lengths["1"] == pytest.approx(10, abs=2)


def test_the_recommended_one_is_marked_and_comes_first() -> None:
    lines = _run(_threads(1, 30_000_000), _threads(2, 10_000_000))
    assert lines[1].split()[0].endswith("threads:2")
    assert lines[1].endswith("recommended")
    assert Certainty.CLEAR.value in lines[0]


def test_what_is_not_ranked_is_grey_with_one_word() -> None:
    emulated = make_result(
        case=make_case(precision="fp16"),
        median_ns=5_000_000,
        flags=[Flag(name="EMULATED", detail="computed in float32")],
    )
    lines = _run(make_result(), make_result(case=make_case(provider="openvino")), emulated)
    (line,) = [line for line in lines if "fp16/cpu" in line]
    assert "·" in line
    assert line.endswith("EMULATED")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = _run(_threads(1, 30_000_000), _threads(2, 10_000_000), width=width)
    assert bool(lines) is (width >= 80)
    assert all(len(line) <= width for line in lines[1:])


def test_a_stream_without_blocks_gets_plain_signs() -> None:
    lines = _run(_threads(1, 30_000_000), _threads(2, 10_000_000), encoding="ascii")
    assert "#" in lines[1]
    assert all(line.isascii() for line in lines)


def test_bars_begin_in_one_column_and_so_do_their_numbers() -> None:
    lines = _run(_threads(1, 30_000_000), _threads(16, 10_000_000))
    assert len({line.index("█") for line in lines[1:3]}) == 1
    assert len({line.index(" ms") for line in lines[1:3]}) == 1


def test_one_variant_needs_no_picture() -> None:
    assert _run(make_result()) == []
    assert _run(make_result(), make_result(case=make_case(model="other"))) == []
    assert _run(make_result(case=make_case(), status="crash")) == []
