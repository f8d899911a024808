"""Check the code in the documentation: it parses, and options, keys and keywords of ours exist.

    python docs/check_blocks.py

A block is checked by its language (bash, console, yaml, toml, ini, json, python). Calls of
``pytest`` and ``ortbench`` in console blocks, in the YAML of CI jobs, in sessions of tox and in
blocks without a language are held against what these accept. Anywhere else on a page every
``--ort-…`` must be an option.
"""

from __future__ import annotations

import ast
import configparser
import importlib
import json
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import click

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

#: Blocks in these show what was printed or drawn, and commands behind a prompt.
_OUTPUT = {"", "text", "console"}
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)[^`]*$")
_OUR_OPTION = re.compile(r"(?<![\w-])--ort-[a-z][a-z-]*")
#: A program by its name or by its place in an environment; ``job/ortbench`` names something else.
_CALL = re.compile(r"(?:^|(?:^|/)bin/)(?P<program>pytest|ortbench)$")
_OPTION = re.compile(r"^--[A-Za-z][\w-]*")
_PROMPT = "$ "
#: Other ways to write options of pytest, and options of plugins that are not in this environment.
_NOT_IN_HELP = {"--junitxml", "--reruns", "--reruns-delay", "--only-rerun", "--rerun-except"}


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Attributes:
        page: Path of the page in the repository.
        line: Number of its first line.
        language: As it stands behind the fence, empty for none.
        text: Its lines, without the indentation of the fence.
    """

    page: str
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Known:
    """What may be written.

    Attributes:
        pytest: Options of pytest, with those of every plugin that the documentation shows.
        ortbench: Options of each command of ``ortbench``, by its words (``gate``).
        keys: Ini keys of ours.
        keywords: Keywords of the marker.
    """

    pytest: frozenset[str]
    ortbench: dict[str, frozenset[str]]
    keys: frozenset[str]
    keywords: frozenset[str]


def blocks_of(text: str, page: str = "") -> tuple[list[Block], str]:
    """Return the blocks of code of a page, and the rest of it, line by line in its place."""
    blocks: list[Block] = []
    rest: list[str] = []
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        rest.append("" if opening else lines[index])
        index += 1
        if not opening:
            continue
        first, inner = index, []
        while index < len(lines) and lines[index].strip() != opening["fence"]:
            inner.append(lines[index].removeprefix(opening["indent"]))
            rest.append("")
            index += 1
        rest.append("")
        index += 1
        blocks.append(Block(page, first + 1, opening["language"], "\n".join(inner) + "\n"))
    return blocks, "\n".join(rest)


def faults_of(block: Block, known: Known) -> Iterator[str]:
    """Yield what is wrong with a block."""
    language, text = block.language, block.text
    try:
        if language in _OUTPUT:
            yield from _of_calls(commands_of(text), known)
        elif language in ("bash", "sh"):
            yield from _of_shell(text)
            yield from _of_calls(_joined(text.splitlines()), known)
        elif language == "yaml":
            yield from _of_jobs(text, known)
        elif language == "toml":
            yield from _of_settings(tomllib.loads(text), known)
        elif language == "ini":
            yield from _of_ini(text, known)
        elif language == "json":
            json.loads(text)
        elif language == "python":
            yield from _of_python(text, known)
        else:
            yield f"no check for the language {language!r}"
    except (SyntaxError, ValueError, configparser.Error) as error:
        yield f"{language or 'text'} that does not parse: {error}"


def commands_of(text: str) -> list[str]:
    """Return the commands of a console block: behind prompts, or whole lines that are calls."""
    lines = text.splitlines()
    if any(line.startswith(_PROMPT) for line in lines):
        commands = []
        goes_on = False
        for line in lines:
            if goes_on or line.startswith(_PROMPT):
                commands.append(line if goes_on else line.removeprefix(_PROMPT))
                goes_on = line.endswith("\\")
        return _joined(commands)
    return [
        line for line in _joined(lines) if re.match(r"(?:[\w.]+/)*(?:pytest|ortbench) -?\w", line)
    ]


def _joined(lines: Iterable[str]) -> list[str]:
    """Join lines that end with a backslash to the next ones."""
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def _of_calls(commands: Iterable[str], known: Known) -> Iterator[str]:
    for command in commands:
        try:
            words = shlex.split(command, comments=True)
        except ValueError as error:
            yield f"{command!r}: {error}"
            continue
        for call in _split(words):
            yield from _of_call(call, known)


def _split(words: Iterable[str]) -> Iterator[list[str]]:
    """Yield the calls between ``&&``, ``|`` and the like."""
    call: list[str] = []
    for word in words:
        if word in ("&&", "||", "|", ";"):
            yield call
            call = []
        else:
            call.append(word)
    yield call


def _of_call(words: list[str], known: Known) -> Iterator[str]:
    for index, word in enumerate(words):
        program = _CALL.search(word)
        if program is None or (index and words[index - 1] in ("install", "-e")):
            continue
        arguments = words[index + 1 :]
        if program["program"] == "pytest":
            options = known.pytest
        else:
            name = next(
                (n for n in (" ".join(arguments[:2]), *arguments[:1]) if n in known.ortbench), ""
            )
            options = known.ortbench[name]
            if not name and arguments and not arguments[0].startswith("-"):
                if re.fullmatch(r"[a-z-]+", arguments[0]):
                    yield f"ortbench has no command {arguments[0]!r}"
                return
        for argument in arguments:
            written = _OPTION.match(argument)
            if argument == "--":
                return
            if written and written[0] not in options:
                yield f"{program['program']} has no option {written[0]}"
        return


def _of_shell(text: str) -> Iterator[str]:
    ended = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    if ended.returncode:
        yield f"bash: {ended.stderr.strip()}"


def _of_jobs(text: str, known: Known) -> Iterator[str]:
    import yaml

    try:
        jobs = yaml.safe_load(text)
    except yaml.YAMLError as error:
        yield f"yaml that does not parse: {error}"
        return
    for script in _scripts(jobs):
        yield from _of_calls(_joined(re.sub(r"\$\{\{.*?\}\}", "X", script).splitlines()), known)


def _scripts(jobs: Any) -> Iterator[str]:
    """Yield the shell scripts in a CI file."""
    if isinstance(jobs, list):
        for entry in jobs:
            yield from _scripts(entry)
    elif isinstance(jobs, dict):
        for key, entry in jobs.items():
            if key in ("run", "entry") and isinstance(entry, str):
                yield entry
            elif key in ("script", "before_script") and isinstance(entry, list):
                yield from (line for line in entry if isinstance(line, str))
            else:
                yield from _scripts(entry)


def _of_settings(settings: dict[str, Any], known: Known) -> Iterator[str]:
    tool = settings.get("tool", {}).get("pytest", {})
    for key in [*tool, *tool.get("ini_options", {})]:
        yield from _of_key(key, known)


def _of_ini(text: str, known: Known) -> Iterator[str]:
    parser = configparser.RawConfigParser(allow_no_value=True)
    parser.read_string(text)
    for section in parser.sections():
        for key in parser[section]:
            yield from _of_key(key, known)
        for key in ("commands", "command"):
            if parser.has_option(section, key):
                script = re.sub(r"\{[^{}]*\}", "X", parser.get(section, key) or "")
                yield from _of_calls(_joined(script.strip().splitlines()), known)


def _of_key(key: str, known: Known) -> Iterator[str]:
    if key.startswith("ort_") and key not in known.keys:
        yield f"there is no ini key {key}"


def _of_python(text: str, known: Known) -> Iterator[str]:
    for node in ast.walk(ast.parse(textwrap.dedent(text))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.ortbench":
            for keyword in node.keywords:
                if keyword.arg is not None and keyword.arg not in known.keywords:
                    yield f"the marker has no keyword {keyword.arg!r}"


def faults_of_page(text: str, page: str, known: Known) -> Iterator[str]:
    """Yield what is wrong with a page, each with its place."""
    blocks, rest = blocks_of(text, page)
    for block in blocks:
        for fault in faults_of(block, known):
            yield f"{page}:{block.line}: {fault}"
    for number, line in enumerate(rest.splitlines(), start=1):
        for option in _OUR_OPTION.findall(line):
            if option.rstrip("-") not in known.pytest:
                yield f"{page}:{number}: pytest has no option {option}"


def known() -> Known:
    """Ask pytest, and the commands of ``ortbench``, what they accept."""
    from pytest_ortbench.plugin.options import MARKER_KEYWORDS, ROWS

    printed = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"],
        cwd=DOCS / "reference",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return Known(
        pytest=frozenset(re.findall(r"--[A-Za-z][\w-]*", printed)) | _NOT_IN_HELP,
        ortbench=dict(_commands()),
        keys=frozenset(row.ini for row in ROWS),
        keywords=frozenset(MARKER_KEYWORDS),
    )


def _commands() -> Iterator[tuple[str, frozenset[str]]]:
    from pytest_ortbench.cli.application import COMMANDS, application

    yield "", _options(application)
    for name, entry in COMMANDS.items():
        command: click.Command = importlib.import_module(entry.module).command
        yield name, _options(command)
        for inner_name, inner in getattr(command, "commands", {}).items():
            yield f"{name} {inner_name}", _options(inner)


def _options(command: click.Command) -> frozenset[str]:
    return frozenset(
        ["--help", *(opt for made in command.params for opt in (*made.opts, *made.secondary_opts))]
    )


def pages() -> list[Path]:
    """Return the pages that are checked. The changelog tells of options that have gone."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *sorted(DOCS.rglob("*.md")),
    ]


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    accepted = known()
    faults = [
        fault
        for path in pages()
        for fault in faults_of_page(
            path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix(), accepted
        )
    ]
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
