"""The HTML report: self-contained, inert, accessible, and the same numbers as everywhere."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from pathlib import Path

import pytest

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.outcome import Accuracy
from pytest_ortbench.core.run import Canary
from pytest_ortbench.report.answers import answer_lines, unjudged_lines
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html import render_html, write_html
from pytest_ortbench.report.html.details import environment
from tests import results_factory as factory
from tests.report import sample_runs
from tests.report.page_reader import Reader, html_of, html_without_figures, read_page


@pytest.fixture
def page() -> Reader:
    return read_page(html_of("ten"))


def one_space(text: str) -> str:
    return " ".join(text.split())


def test_the_answer_comes_first_and_is_that_of_the_terminal(page: Reader) -> None:
    text = one_space(page.text)
    positions = [text.index(line) for line in answer_lines(shown_run(sample_runs.ten_cases()))]
    assert positions == sorted(positions)
    assert positions[-1] < text.index("All cases")


def test_the_winner_is_stressed() -> None:
    assert re.search(r"fastest at batch 1 <strong>[\w/-]+</strong>, p50 6\.13 ms", html_of("ten"))


def test_a_provider_that_is_called_like_a_part_of_a_word_is_stressed_where_it_is_named() -> None:
    results = [
        sample_runs.measured(sample_runs.case("m", precision, "st", 1), seconds)
        for precision, seconds in (("a", 0.001), ("fp32", 0.002))
    ]
    html = html_without_figures(factory.make_run(results))
    block = html[html.index('id="answer"') : html.index('id="cases"')]
    assert re.findall(r"<strong>(.*?)</strong>", block)[:4] == [
        "fp32/st",
        "fp32/st",
        "a/st",
        "a/st/b1",
    ]
    assert "use <strong>fp32/st</strong>: 2" in block
    assert "recommended: <strong>fp32/st</strong>, fastest" in block
    assert "fastest <strong>a/st/b1</strong>, p50" in block


def test_every_case_is_a_row_with_text_and_value(page: Reader) -> None:
    assert len(page.rows) == 10
    assert page.cell(0, "model") == ("mobilenet_v2", "")
    assert page.cell(0, "case") == ("native/cpu/b1", "")
    text, value = page.cell(0, "p50")
    assert text == "12.4 ms"
    assert float(value) == pytest.approx(0.0124, rel=0.01)
    assert page.cell(1, "p99") == ("n<368", "")
    assert page.cell(2, "status") == ("EMULATED", "")
    assert page.cell(7, "accuracy") == ("exact", "Infinity")
    assert page.cell(5, "status") == ("unavailable", "")


def test_links_within_the_page_lead_somewhere(page: Reader) -> None:
    targets = [values.get("href") or "" for tag, values in page.tags if tag == "a"]
    known = {f"#{values['id']}" for _, values in page.tags if values.get("id")}
    assert targets
    assert set(targets) <= known
    assert "#failure-1" in targets
    assert "#flag-SPREAD" in targets


def test_failures_show_reason_and_native_log(page: Reader) -> None:
    assert (
        "libcudnn.so.9 can't be loaded (cuDNN 9, for CUDA 12) (creating the session)" in page.text
    )
    assert "    libcudnn.so.9: cannot open shared object file" in page.text
    assert "native/cuda/b1, native/cuda/b8" in page.text


def test_flags_origin_and_environment_are_there(page: Reader) -> None:
    text = one_space(page.text)
    for words in (
        "Rely on the interval, not on the value",
        "mobilenet_v2/int8-static/cpu/b1: 7.9 % between workers",
        "1200 inferences in 7.41 s by 3 workers",
        "no trend over 20, windows of 10 agree within 3 %",
        "memory: VmHWM after clear_refs",
        "computing nodes executed: 60 by OpenVINOExecutionProvider, 4 by CPUExecutionProvider",
        "accuracy: 8 input sets (random inputs) against fp32 on CPUExecutionProvider",
        "cpu_model Example CPU 3000",
        "azure: takes no node of a local model",
        "Latency: one inference, host arrays in and out (end-to-end); closed loop",
    ):
        assert words in text


def test_nothing_is_fetched_and_only_our_own_style_and_script_may_run(page: Reader) -> None:
    html = html_of("ten")
    metas = [values for tag, values in page.tags if tag == "meta"]
    (policy,) = [m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy"]
    for kind, content in (
        ("style", re.search(r"<style>(.*?)</style>", html, re.DOTALL)),
        ("script", re.search(r"<script>(.*?)</script>", html, re.DOTALL)),
    ):
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none'; ")
    assert "unsafe" not in str(policy)
    for tag, values in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert not any(name.startswith("on") or name == "style" for name in values), (tag, values)
        for name in ("src", "href", "action", "srcset"):
            assert (values.get(name) or "#").startswith(("#", "data:image/svg+xml;base64,"))


def test_figures_are_inside_with_words_for_who_cannot_see_them(page: Reader) -> None:
    pictures = [values for tag, values in page.tags if tag == "img"]
    assert len(pictures) == 7
    for picture in pictures:
        assert len(picture["alt"] or "") > 30
        _, _, encoded = (picture["src"] or "").partition(",")
        assert b"<svg " in base64.b64decode(encoded)[:2000]


def test_the_table_is_told_to_assistive_technology(page: Reader) -> None:
    headings = [values for tag, values in page.tags if tag == "th" and "data-key" in values]
    assert all(values["scope"] == "col" for values in headings)
    assert [v["data-key"] for v in headings if "aria-sort" not in v] == ["interval"]
    rows = [values for tag, values in page.tags if tag == "th" and values.get("scope") == "row"]
    shown = shown_run(sample_runs.ten_cases())
    cards = answers(shown.run, shown.summaries)
    assert len(rows) == 10 + sum(len(group.bars) for card in cards for group in card.bars)
    assert ("html", {"lang": "en"}) in page.tags
    labels = [tag for tag, _ in page.tags if tag == "label"]
    fields = [tag for tag, _ in page.tags if tag in ("input", "select")]
    assert len(labels) == len(fields) == 5


def test_every_foreign_text_is_inert() -> None:
    html = html_of("hostile")
    page = read_page(html)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "alert(1)" in page.text
    assert "{{7*7}}" in page.text
    assert "<script>alert" not in html
    for character in ("\x1b", "\u202e", "\r"):
        assert character not in html
    # The text of this page and that of one with a harmless name have the same structure.
    assert page.cell(1, "status") == ("crash", "")


def test_a_run_without_cases_is_a_page() -> None:
    page = read_page(render_html(shown_run(factory.make_run([]))))
    assert "No case was measured." in page.text


def test_an_interrupted_run_says_so() -> None:
    run = factory.make_run([sample_runs.failed(sample_runs.case())], finished=False)
    run = dataclasses.replace(run, expected=8)
    page = read_page(render_html(shown_run(run)))
    assert "interrupted: 7 planned cases were not reached" in page.text


def test_it_is_written_as_utf8(tmp_path: Path) -> None:
    of = sample_runs.case()
    of = dataclasses.replace(of, model=dataclasses.replace(of.model, name="größe_模型_\udce9"))
    run = factory.make_run([sample_runs.failed(of)])
    write_html(shown_run(run), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "größe_模型_\\udce9" in text


@pytest.mark.parametrize(
    ("durations_ms", "shown"), [((1, 3), "2.00 ms"), ((4, 1, 3), "3.00 ms"), ((7,), "7.00 ms")]
)
def test_the_canary_is_told_by_its_median(durations_ms: tuple[int, ...], shown: str) -> None:
    durations = tuple(ms * 1_000_000 for ms in durations_ms)
    canary = Canary(model="builtin:canary@1", durations_ns=durations)
    run = dataclasses.replace(sample_runs.one_case(), canary=canary)
    (about,) = (facts for heading, facts in environment(run) if heading == "Run")
    assert dict(about)["canary"] == f"builtin:canary@1: median {shown}"


def test_what_could_not_be_judged_is_counted_below_the_answers():
    random = dataclasses.replace(
        factory.make_result(case=factory.make_case(model="noise")),
        accuracy=Accuracy(reason="the graph draws random numbers (RandomNormal)"),
    )
    run = factory.make_run(
        [factory.make_result(), dataclasses.replace(random, flags=flags_of(random))]
    )
    assert unjudged_lines(shown_run(run)) == [
        "1 of 2 cases could not be judged: accuracy of noise/native/cpu/b1: the graph draws random "
        "numbers (RandomNormal)",
    ]
    assert "1 of 2 cases could not be judged" in html_without_figures(run)
    assert unjudged_lines(shown_run(factory.make_run([factory.make_result()]))) == []
