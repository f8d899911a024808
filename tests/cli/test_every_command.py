"""What holds for all commands: examples that can be typed, completion, documents of any version."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pytest_ortbench.cli import application
from pytest_ortbench.cli.application import COMMANDS
from pytest_ortbench.core.run import SCHEMA_VERSION

GOLDEN = sorted((Path(__file__).parents[1] / "schema" / "golden").glob("v*.json"))


def examples() -> list[str]:
    """Every example of the help that calls this tool, the lines that follow a backslash joined."""
    context = click.Context(application.application)
    found: list[str] = []
    commands = [application.application.get_command(context, name) for name in COMMANDS]
    commands += [inner for outer in commands for inner in getattr(outer, "commands", {}).values()]
    for command in commands:
        assert command is not None
        lines = (command.epilog or "").partition("Examples:\n")[2].splitlines()
        found += [line.strip() for line in lines if line.strip().startswith("ortbench ")]
    return found


@pytest.mark.parametrize("example", examples())
def test_an_example_names_only_commands_and_options_that_exist(example: str) -> None:
    words = shlex.split(example.partition(" #")[0])[1:]
    context = click.Context(application.application)
    command = application.application.get_command(context, words.pop(0))
    assert command is not None
    if isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    # Behind "--" stands what pytest takes.
    own = words[: words.index("--")] if "--" in words else words
    used = {word.partition("=")[0] for word in own if word.startswith("-")}
    assert used <= known


@pytest.mark.live
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ortbench", "sh"], "show"),
        (["ortbench", "compare", "--met"], "--metric"),
        (["ortbench", "compare", "--by", ""], "machine"),
        (["ortbench", "runtimes", "cr"], "create"),
    ],
)
def test_commands_options_and_choices_complete(typed: list[str], offered: str) -> None:
    environment = {
        **os.environ,
        "_ORTBENCH_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(typed),
        "COMP_CWORD": str(len(typed) - 1),
    }
    program = "from pytest_ortbench.cli import main; import sys; sys.argv[0] = 'ortbench'; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"plain,{offered}" in ended.stdout.splitlines()


def test_there_is_a_document_of_every_version() -> None:
    assert [path.stem for path in GOLDEN] == [f"v{n + 1}" for n in range(SCHEMA_VERSION)]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "run.json"),
        ("export", "run.json", "--format=csv"),
        ("schema", "run.json"),
        ("report", "run.json", "--output=page.html"),
        ("plot", "run.json", "--output=plots"),
        ("compare", "run.json", "--by=provider"),
        ("merge", "run.json", "--output=merged.json"),
        ("trend", "."),
        ("badge", "run.json", "tagger"),
        ("gate", "run.json", "run.json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_version_is_read_by_every_command(
    tool, tmp_path: Path, golden: Path, arguments: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    if golden != GOLDEN[-1]:
        # What is read of it is the same, and drawn for the newest version.
        request.getfixturevalue("empty_figures")
    shutil.copy(golden, tmp_path / "run.json")
    for number in range(2, 6):  # a trend needs several runs
        folder = tmp_path / str(number)
        folder.mkdir()
        text = golden.read_text(encoding="utf-8")
        (folder / "run.json").write_text(text.replace("-0a1b", f"-0a1{number}"), encoding="utf-8")
    ended = tool(*arguments)
    # A run that is compared with itself is told, in one line.
    assert (ended.code, ended.err.count("\n")) == (0, int(arguments[0] == "gate"))
    assert ended.out
