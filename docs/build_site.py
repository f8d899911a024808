"""Build the documentation as a site of static files: pages, search, pictures.

    python docs/build_site.py [--to=site]

The pages are copied aside first, together with those of the repository's root (SECURITY.md and the
like), and links between them are set to where they are on the site. Zensical builds the copy and
fails on a link, an anchor or a page that is not there.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
import generate  # noqa: E402  # scripts of this folder are no package

ROOT = DOCS.parent
CONFIGURATION = DOCS / "zensical.toml"

#: Pages of the repository that lie outside of this folder, and where the site has them.
FROM_ELSEWHERE = {
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "results/README.md": "project/results.md",
    "models/README.md": "reference/catalogue.md",
}
#: What is copied beside pages.
_ASSETS = {".png", ".svg", ".css", ".json"}

_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
#: What tests do with the block behind it (tests/site_blocks.py); it would leave a gap. The block of
#: a file is titled with its path.
_MARK = re.compile(r"^<!-- (?:ready|run)\b.*-->\n", re.MULTILINE)
_FILE = re.compile(r"^<!-- file: (\S+) -->\n```(\w+)$", re.MULTILINE)
_FENCE = re.compile(r"^ *(?:```|~~~)")
#: Characters that a block of code shows beside both side bars.
_COLUMNS = 90
#: Cells of a table, or what stands under another thing.
_IN_COLUMNS = re.compile(r"[^\s|] {2,}[^\s|]|[█░]")


def pages() -> dict[str, str]:
    """Return every page of the site: its path in the repository, and its path on the site."""
    own = {
        path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*.md"))
    }
    made = {f"docs/reference/{name}": f"reference/{name}" for name in generate.SITE_PAGES}
    return {**own, **FROM_ELSEWHERE, **made}


def assets() -> dict[str, str]:
    """Return all that is no page: path in the repository, and path on the site."""
    return {
        path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*"))
        if path.suffix in _ASSETS
    }


def on_the_site(text: str, source: str, places: dict[str, str]) -> str:
    """Return a page with its links set to where their targets are on the site.

    What the site does not have (a folder, a script) keeps its text and loses its link.

    Args:
        text: The page.
        source: Its path in the repository.
        places: Path on the site by path in the repository, of everything that is there.
    """

    def replaced(match: re.Match[str]) -> str:
        label, target = match.groups()
        path, mark, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if file not in places:
            if (ROOT / file).exists():
                return label[1:-1]
            raise FileNotFoundError(f"{source}: a link to {target}, which is not there")
        place = posixpath.relpath(places[file], posixpath.dirname(places[source]) or ".")
        return f"{label}({place}{mark}{anchor})"

    return "".join(
        with_whole_lines(part) if is_code else _LINK.sub(replaced, _MARK.sub("", part))
        for is_code, part in _in_parts(_FILE.sub(r'```\2 title="\1"', text))
    )


def with_whole_lines(block: str) -> str:
    """Let the long lines of a terminal's output go on below, where no table would be torn.

    Args:
        block: A block of code with its fences.
    """
    first, *lines = block.splitlines(keepends=True)
    language = first.strip().removeprefix("```")
    long = [line for line in lines if len(line) > _COLUMNS]
    if language not in ("console", "text") or not long or any(map(_IN_COLUMNS.search, long)):
        return block
    indent = first[: len(first) - len(first.lstrip())]
    return "".join([f"{indent}``` {{ .{language} .whole-lines }}\n", *lines])


def _in_parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a page, with whether it is a block of code."""
    part: list[str] = []
    is_code = False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            if is_code:
                part.append(line)
                yield True, "".join(part)
                part = []
            else:
                yield False, "".join(part)
                part = [line]
            is_code = not is_code
        else:
            part.append(line)
    yield is_code, "".join(part)


def stage(folder: Path) -> None:
    """Copy everything that the site is built from into a folder."""
    places = {**pages(), **assets()}
    for source, place in places.items():
        path = folder / "docs" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            is_made = path.name in generate.SITE_PAGES and path.parent.name == "reference"
            text = (
                generate.SITE_PAGES[path.name]()
                if is_made
                else (ROOT / source).read_text(encoding="utf-8")
            )
            path.write_text(on_the_site(text, source, places), encoding="utf-8")
        else:
            shutil.copy(ROOT / source, path)
    shutil.copy(CONFIGURATION, folder / CONFIGURATION.name)


def build(to: Path) -> int:
    """Build the site into a folder, which is replaced; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="ortbench-site-") as name:
        folder = Path(name)
        stage(folder)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        ended = subprocess.run(
            command, cwd=folder, check=False, capture_output=True, encoding="utf-8"
        )
        if ended.returncode:
            # What follows its count of issues is its own traceback.
            report = _COLOUR.sub("", ended.stdout + ended.stderr).partition("Traceback")[0]
            sys.stderr.write(report)
            return 1
        if to.exists():
            shutil.rmtree(to)
        shutil.copytree(folder / "site", to)
    print(f"the site: {to / 'index.html'}")  # noqa: T201
    return 0


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description="Build the documentation as a static site.")
    parser.add_argument("--to", type=Path, default=ROOT / "site", help="the folder to write")
    return build(parser.parse_args().to)


if __name__ == "__main__":
    sys.exit(main())
