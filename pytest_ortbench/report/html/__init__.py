"""One self-contained page for a run: no network, inert whatever names it holds.

Import this package inside functions: it brings jinja2 and matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures.slo import Slo
from pytest_ortbench.report.html.page import build_page
from pytest_ortbench.report.one_page import render_page


def write_html(
    run: Run, path: Path, *, slo: Slo | None = None, shown: Sequence[Entry] | None = None
) -> None:
    """Write the report of a run as one HTML file in UTF-8; arguments as of :func:`render_html`."""
    path.write_text(render_html(run, slo=slo, shown=shown), encoding="utf-8")


def render_html(run: Run, *, slo: Slo | None = None, shown: Sequence[Entry] | None = None) -> str:
    """Return the report of a run as one HTML document.

    All styles, scripts and pictures are inside; the content security policy allows exactly these,
    by their digests, and no connection to anywhere.

    Args:
        run: Any run.
        slo: Latency that must be kept, drawn as a line.
        shown: Its cases with their summaries, where the caller has them already.
    """
    return render_page(
        _text("page.html.j2"),
        style=_text("style.css"),
        script=_text("table.js"),
        page=build_page(run, slo=slo, shown=shown),
    )


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
