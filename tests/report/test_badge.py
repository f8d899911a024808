"""The badge says what the answer says."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.badge import Badge, model_badge, render_json, render_svg
from pytest_ortbench.report.entries import shown_run
from tests import results_factory as factory
from tests.report import sample_runs


def test_the_fastest_variant_with_its_interval() -> None:
    run = sample_runs.ten_cases()
    badge = json.loads(render_json(model_badge(shown_run(run), "mobilenet_v2")))
    assert badge["schemaVersion"] == 1
    assert badge["label"] == "mobilenet_v2"
    assert badge["color"] == "blue"
    label, _, number = badge["message"].partition(" ")
    assert label == "int8-static/cpu/b1"
    assert f"{label}, p50 {number}, " in answer_lines(shown_run(run))[2]


def test_nothing_to_rank() -> None:
    run = factory.make_run([sample_runs.failed(sample_runs.case())])
    badge = json.loads(render_json(model_badge(shown_run(run), "mobilenet_v2")))
    assert (badge["message"], badge["color"]) == ("not ranked", "lightgrey")


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(UsageError, match="'mobilenet_v3' is not a model of this run"):
        model_badge(shown_run(sample_runs.one_case()), "mobilenet_v3")


SVG = "{http://www.w3.org/2000/svg}"


def read(svg: str) -> tuple[ElementTree.Element, list[str]]:
    """The root and the two texts that are drawn."""
    root = ElementTree.fromstring(svg)
    return root, [text.text or "" for text in root.iter(f"{SVG}text")]


def test_the_picture_says_the_same_as_the_json() -> None:
    badge = model_badge(shown_run(sample_runs.ten_cases()), "mobilenet_v2")
    root, texts = read(render_svg(badge))
    assert texts == [badge.label, badge.message]
    assert root.get("role") == "img"
    assert root.get("aria-label") == f"{badge.label}: {badge.message}"
    halves = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill")]
    assert halves[1].get("fill") == "#0a58a8"
    assert sum(float(rect.get("width", "0")) for rect in halves) == float(root.get("width", "0"))


def test_hostile_names_are_text_and_nothing_else() -> None:
    run = sample_runs.hostile()
    names = {result.case.model.name for result in run.cases}
    assert sample_runs.HOSTILE in names
    for name in names:
        badge = model_badge(shown_run(run), name)
        svg = render_svg(badge)
        root, texts = read(svg)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
            "svg", "title", "clipPath", "rect", "g", "text",
        }  # fmt: skip
        assert texts[0].rstrip("…") == badge.label[: len(texts[0].rstrip("…"))]
        assert len(texts[0]) == min(60, len(badge.label))
        assert "<script" not in svg
        assert not {"\x1b", "\u202e", "\r"} & set(svg)
        # A quote must not end the attribute: no attribute appears that we did not write.
        assert set(root.attrib) == {"width", "height", "role", "aria-label"}


def test_long_texts_are_cut_in_the_picture_and_whole_in_its_title() -> None:
    badge = Badge(label="m" * 100, message="語" * 20, colour="lightgrey")
    root, (label, message) = read(render_svg(badge))
    assert (len(label), label[-1], message) == (60, "…", "語" * 20)
    assert root.findtext(f"{SVG}title") == f"{badge.label}: {badge.message}"
    right = [rect for rect in root.iter(f"{SVG}rect") if rect.get("fill")][1]
    # Wide characters get the room that they need.
    assert float(right.get("width", "0")) >= 20 * 11


def test_white_text_can_be_read_on_every_colour() -> None:
    for colour in ("blue", "yellow", "lightgrey"):
        svg = render_svg(Badge(label="a", message="b", colour=colour))
        fills = [r.get("fill", "") for r in read(svg)[0].iter(f"{SVG}rect") if r.get("fill")]
        for fill in fills:
            assert 1.05 / (luminance(fill) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
