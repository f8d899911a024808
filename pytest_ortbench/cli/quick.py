"""``ortbench quick``: one call that measures a model and opens the page of what was found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

import click

from pytest_ortbench.cli.adoption.writing import RESULTS, is_free
from pytest_ortbench.cli.arguments import epilog, words_for_pytest
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.command_line import in_shell

#: What pytest ends with when tests failed; another number than 0 is a call that went wrong.
_TESTS_FAILED = 1
_INTERRUPTED = 2


@click.command(
    epilog=epilog(
        "ortbench quick model.onnx",
        "ortbench quick model.onnx --budget=5m --no-open",
        "ortbench quick zoo:silero-vad --output=page.html",
    ),
)
@click.argument("model")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST...]")
@click.option(
    "--budget",
    default="",
    help="Time of the whole run, such as 5m: pytest's --ort-budget. By default each case takes "
    "what it takes with pytest.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page here; by default ortbench-MODEL.html in the current folder.",
)
@click.option("--no-open", is_flag=True, help="Only say where the page is.")
def command(
    model: str, arguments: tuple[str, ...], budget: str, output: Path | None, no_open: bool
) -> int:
    """Measure MODEL, a file or a name such as zoo:silero-vad, and open the page of the run.

    It runs 'pytest MODEL --ort-providers=all --ort-html=PAGE', and prints the whole command first.
    What follows '--' goes to pytest: '-- --ort-threads=1,2'.
    """
    page = output or Path(f"ortbench-{_name_of(model)}.html")
    earlier = _written_at(page)
    words = _words(model, page, budget, arguments)
    say(f"runs: pytest {in_shell(words)}")
    # The interpreter of this tool, whatever 'pytest' is on the path.
    ended = subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode
    if _written_at(page) == earlier:
        warn("ortbench: no page was written; what went wrong stands above")
        return ExitCode.INTERRUPTED if ended == _INTERRUPTED else ExitCode.NOTHING
    path = page.resolve()
    if not no_open and _has_display(os.environ) and webbrowser.open(path.as_uri()):
        say(f"opened: {path}")
    else:
        say(f"open it with a browser: {path}")
    return ExitCode.LIMIT_FAILED if ended == _TESTS_FAILED else ExitCode.FINE


def _words(model: str, page: Path, budget: str, arguments: tuple[str, ...]) -> list[str]:
    """Arguments of pytest; settings of a project that are about its own tests do not count."""
    own = {argument.partition("=")[0] for argument in arguments}
    set_here = []
    if "--ort-providers" not in own:
        set_here.append("--ort-providers=all")
    if budget:
        set_here.append(f"--ort-budget={budget}")
    if not own & {"--ort-results", "--ort-no-results"} and not is_free(Path(RESULTS[0])):
        set_here.append(f"--ort-results={RESULTS[1]}")
    return [
        *words_for_pytest(model),
        *set_here,
        f"--ort-html={page}",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]


def _name_of(model: str) -> str:
    """A model's name as a part of the name of a file."""
    name = re.sub(r"[^\w.+-]+", "-", Path(model).stem or model).strip("-.")
    return name or "model"


def _written_at(page: Path) -> int | None:
    """When a page was written; ``None`` if it is not there."""
    try:
        return page.stat().st_mtime_ns
    except OSError:
        return None


def _has_display(environment: Mapping[str, str]) -> bool:
    """Whether a browser could show something to whoever called."""
    if environment.get("CI"):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
