from __future__ import annotations

import errno
import os
import subprocess
import sys

import click
import pytest

from pytest_ortbench import __version__, cli
from pytest_ortbench.cli import application
from pytest_ortbench.cli.application import COMMANDS
from pytest_ortbench.core.errors import DocumentError
from tests.results_factory import make_run
from tests.schema.full_run import RUN


def every_command() -> list[tuple[str, ...]]:
    """The words of each command and subcommand."""
    found: list[tuple[str, ...]] = []
    context = click.Context(application.application)
    for name in COMMANDS:
        command = application.application.get_command(context, name)
        found.append((name,))
        found += [(name, inner) for inner in getattr(command, "commands", {})]
    return found


def test_the_help_names_every_command_and_the_exit_codes(tool):
    ended = tool("--help")
    assert ended.code == 0
    for name, entry in COMMANDS.items():
        assert name in ended.out
        assert entry.help in ended.out
    assert "0 success, 1 a limit failed, 2 the call is wrong, 3 nothing could be" in ended.out


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_has_help_with_an_example(tool, words):
    for flag in ("--help", "-h"):
        ended = tool(*words, flag)
        assert ended.code == 0
        assert ended.out.startswith(f"Usage: ortbench {' '.join(words)}")
        examples = ended.out.partition("Examples:\n")[2].splitlines()
        assert any(line.strip().startswith(("ortbench ", "pytest ")) for line in examples)


def test_the_version_is_told(tool):
    assert tool("--version").out == f"pytest-ortbench {__version__}\n"


@pytest.mark.live
def test_the_help_imports_no_command_and_nothing_heavy():
    program = (
        "import sys; from pytest_ortbench.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('numpy', 'msgspec', 'onnx', 'scipy', 'rich', 'matplotlib', 'pytest')\n"
        "print([n for n in sys.modules if n.split('.')[0] in heavy "
        "or n.startswith('pytest_ortbench.cli.') and n.split('.')[-1] in "
        f"{tuple(COMMANDS)}], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stderr.decode().strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shw"], "No such command 'shw'. Did you mean 'show'?"),
        (["--fromat=csv"], "No such option"),
        (["export"], "Missing argument 'RUN...'"),
        (["export", "latest", "--format=xml"], "'xml' is not one of 'csv', 'json', 'md'"),
        (["export", "latest", "--output=/"], "is a directory"),
    ],
)
def test_a_wrong_call_is_told_with_the_way_out(tool, arguments, message):
    ended = tool(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert message in ended.err


def test_an_error_is_one_line_on_standard_error(tool, monkeypatch):
    def fail(*_):
        raise DocumentError("first\nsecond \x1b[31mred", place="a.json", hint="Next step")

    monkeypatch.setattr("pytest_ortbench.store.documents.resolve_run", fail)
    ended = tool("show", "a.json")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err == "ortbench: a.json: first second \\x1b[31mred. Next step\n"


def test_an_interrupt_ends_it_without_a_traceback(tool, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_ortbench.store.documents.resolve_run", interrupt)
    ended = tool("show", "a.json")
    assert (ended.code, ended.out) == (130, "")


def test_main_exits_with_the_code(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ortbench", "show"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2


def call(*arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_ortbench.cli", *arguments], check=False, **options
    )


@pytest.mark.live
def test_a_reader_that_has_had_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = call("schema", stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.live
def test_a_terminal_that_lacks_characters_gets_stand_ins(store):
    path = store(make_run())
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = call("show", str(path), env=environment, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.isascii()
    assert b"mobilenet_v2" in ended.stdout


def test_the_installed_script_calls_main():
    from importlib.metadata import entry_points

    scripts = [each for each in entry_points(group="console_scripts") if each.name == "ortbench"]
    if not scripts:
        pytest.skip("pytest-ortbench is not installed here: pip install -e .")
    assert scripts[0].load() is cli.main


def test_errors_about_documents_name_the_file(tool, store):
    path = store(RUN)
    path.write_bytes(path.read_bytes()[:700])
    ended = tool("show", path)
    assert ended.code == 2
    assert (ended.error.place, "700" in ended.error.message.split()) == (str(path), True)
    assert ended.err.count("\n") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
@pytest.mark.live
def test_output_that_finds_no_room_is_one_message():
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        ended = subprocess.run(
            [sys.executable, "-m", "pytest_ortbench.cli", "models", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("ortbench: ")


def test_another_fault_of_the_system_keeps_its_traceback(monkeypatch):
    def broken(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(application.application, "main", broken)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        application.run(["models"])
