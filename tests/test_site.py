"""The site: its navigation, the links between its pages, and what stands in its folder."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    """Import a script of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SITE = script("build_site")
CONFIGURATION = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]


def listed(entries: Any) -> Iterator[str]:
    """Yield the pages that a part of the navigation names."""
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from listed(entry)


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(listed(CONFIGURATION["nav"])) == sorted(SITE.pages().values())


def test_links_lead_to_where_the_site_has_their_targets() -> None:
    places = {"docs/guides/a.md": "guides/a.md", "SECURITY.md": "project/security.md"}
    text = (
        "[safe](../../SECURITY.md#what), [up](#x), [web](https://onnx.ai), [pages](../generate.py)"
    )
    assert SITE.on_the_site(text, "docs/guides/a.md", places) == (
        "[safe](../project/security.md#what), [up](#x), [web](https://onnx.ai), pages"
    )


def test_links_in_code_are_left_alone() -> None:
    text = "a\n```\n[x](nowhere.md)\n```\n"
    assert SITE.on_the_site(text, "docs/a.md", {"docs/a.md": "a.md"}) == text


def test_marks_of_tests_are_no_part_of_a_page() -> None:
    text = "a\n\n<!-- run: exit=1 -->\n```console\n$ a\n<!-- run -->\n```\n"
    assert SITE.on_the_site(text, "docs/a.md", {"docs/a.md": "a.md"}) == (
        "a\n\n```console\n$ a\n<!-- run -->\n```\n"
    )


def test_a_file_of_a_page_is_titled_with_its_path() -> None:
    text = "a\n\n<!-- file: b/c.toml -->\n```toml\nd = 1\n```\n"
    assert SITE.on_the_site(text, "docs/a.md", {"docs/a.md": "a.md"}) == (
        'a\n\n```toml title="b/c.toml"\nd = 1\n```\n'
    )


@pytest.mark.parametrize(
    ("language", "line", "is_marked"),
    [
        ("console", "model: use fp32/cpu: " + "word " * 20, True),
        ("text", "model: use fp32/cpu: " + "word " * 20, True),
        ("text", "| det | **slower** | " + "word " * 20 + "|  |", True),
        ("python", "# " + "word " * 20, False),
        ("console", "word " * 10, False),
        ("console", "  native/cpu/b1  1.00 ms  [0.9, 1.1]  " + "1.2 ms " * 12, False),
    ],
)
def test_long_lines_of_an_output_go_on_below_where_no_table_is_torn(
    language: str, line: str, is_marked: bool
) -> None:
    body = f"{line.rstrip()}\n```\n"
    mark = f"``` {{ .{language} .whole-lines }}" if is_marked else f"```{language}"
    shown = SITE.on_the_site(f"a\n```{language}\n{body}", "docs/a.md", {"docs/a.md": "a.md"})
    assert shown == f"a\n{mark}\n{body}"


def test_a_link_to_nothing_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        SITE.on_the_site("[x](nowhere.md)", "docs/a.md", {"docs/a.md": "a.md"})


def test_what_the_site_is_made_of_is_there(tmp_path: Path) -> None:
    SITE.stage(tmp_path)
    for place in [*SITE.pages().values(), *SITE.assets().values()]:
        assert (tmp_path / "docs" / place).is_file()
    assert (tmp_path / "zensical.toml").is_file()


def test_the_readme_is_short_and_shows_a_picture_first() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert re.fullmatch(r"!\[.+\]\(docs/pictures/[\w.-]+\)", lines[0])


def on_the_index(text: str) -> str:
    """Return the README as the package index shows it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for change in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"][
        "substitutions"
    ]:
        text = re.sub(change["pattern"], change["replacement"], text)
    return text


def test_every_link_of_the_readme_leads_to_the_site_on_the_package_index() -> None:
    host = CONFIGURATION["site_url"]
    places = {place.removesuffix("index.md").removesuffix(".md") for place in SITE.pages().values()}
    links = re.findall(r"\]\(([^()]+)\)", on_the_index((ROOT / "README.md").read_text("utf-8")))
    assert len(links) > 20
    for link in links:
        assert link.startswith(host), link
        path = link.removeprefix(host).partition("#")[0]
        assert path in SITE.assets().values() or path.rstrip("/") in {
            place.rstrip("/") for place in places
        }, link


def test_every_url_of_the_metadata_is_a_page_of_the_site() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    places = {place.removesuffix("index.md").removesuffix(".md") for place in SITE.pages().values()}
    for url in project["urls"].values():
        assert url.startswith(CONFIGURATION["site_url"])
        assert url.removeprefix(CONFIGURATION["site_url"]).rstrip("/") in places, url


#: Guides that tell how to read something before they show it.
_READ_FIRST = {"engines.md"}


@pytest.mark.parametrize("path", sorted((DOCS / "guides").glob("*.md")), ids=lambda path: path.stem)
def test_a_guide_shows_what_to_write_at_its_top(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    first = next(at for at, line in enumerate(lines) if line.startswith("```"))
    assert first <= 6 or path.name in _READ_FIRST


def test_anchors_in_the_readme_are_headings_of_their_pages() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    anchored = re.findall(r"\]\((\S+\.md)#([\w-]+)\)", text)
    assert anchored
    for page, anchor in anchored:
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs, page
