"""A page that is one file: styles, script and pictures inside, and no connection to anywhere."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup


def render_page(template: str, *, style: str, script: str, **values: object) -> str:
    """Fill a template; the content security policy allows exactly this style and this script.

    Args:
        template: Source of the page, which names ``policy``, ``style`` and ``script``; it may
            import ``cards``.
        style: Our own file, as all that is not escaped.
        script: Likewise.
        values: What else the template names; it is escaped.
    """
    environment = Environment(
        loader=DictLoader({"page": template, "cards": _cards()}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("page").render(
        policy=policy, style=Markup(style), script=Markup(script), **values
    )


def _cards() -> str:
    folder = resources.files("pytest_ortbench.report.cards")
    return folder.joinpath("cards.html.j2").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"
