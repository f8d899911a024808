"""One self-contained page for a run: no network, inert whatever names it holds.

Import this package inside functions: it brings jinja2 and matplotlib.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.figures.slo import Slo
from pytest_ortbench.report.html.page import build_page
from pytest_ortbench.report.one_page import render_page


def write_html(shown: ShownRun, path: Path, *, slo: Slo | None = None) -> None:
    """Write the report of a run as one HTML file in UTF-8; arguments as of :func:`render_html`."""
    replace_file(path, render_html(shown, slo=slo).encode())


def render_html(shown: ShownRun, *, slo: Slo | None = None) -> str:
    """Return the report of a run as one HTML document.

    All styles, scripts and pictures are inside; the content security policy allows exactly these,
    by their digests, and no connection to anywhere.

    Args:
        shown: Any run.
        slo: Latency that must be kept, drawn as a line.
    """
    return render_page(
        _text("page.html.j2"),
        style=_text("style.css"),
        script=_text("table.js"),
        page=build_page(shown, slo=slo),
    )


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
