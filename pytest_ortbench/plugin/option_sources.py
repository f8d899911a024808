"""Options as pytest has them: registered, and found on the command line or in the ini file.

Nothing is imported here that pytest itself has not imported until an option is set: this module is
part of what every project pays that merely has the plugin installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.option import IniType, OptionRow
from pytest_ortbench.plugin.options import ROWS

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.option_text import OptionText
    from pytest_ortbench.plugin.options import Options

#: How every option of ours begins.
_OURS = "--ort"
#: Characters of a value that a message shows.
_LONGEST_SHOWN = 60

#: A value of each type of ini key, as TOML has it.
_EXAMPLES: dict[IniType, str] = {
    "args": '["A", "B"] in TOML, numbers in quotes too',
    "linelist": '["A", "B"] in TOML',
    "int": "3",
    "float": "2.5",
    "string": '"text"',
    "bool": "true",
}


def add_options(parser: pytest.Parser) -> None:
    """Register every option and its ini key; for ``pytest_addoption``."""
    group = parser.getgroup(
        "ortbench",
        "ortbench: benchmark ONNX models (lists are repeatable and split at commas; every option "
        "is an ini key too, --ort-time is ort_time, and the command line replaces the ini value)",
    )
    for row in ROWS:
        ini_help = f"{row.help}; same as {row.flag}" if row.flag else row.help
        parser.addini(row.ini, ini_help, type=row.ini_type, default=None)
        if not row.flag:
            continue
        # Texts and no types here: argparse would answer a wrong value with the usage of pytest
        # instead of the rule. read_options says what is wrong and where. Without its place pytest
        # would compare each option with all others.
        text = row.help.replace("%", "%%")
        if row.kind == "flag":
            group.addoption(row.flag, dest=row.ini, action="store_true", default=None, help=text)
        else:
            action = "append" if row.kind in ("list", "lines") else "store"
            group.addoption(
                row.flag, dest=row.ini, action=action, default=None, metavar=row.metavar, help=text
            )


def is_asked_for(config: pytest.Config) -> bool:
    """Whether command line or ini file set any option of ours, rightly or wrongly.

    What stands in ``addopts`` or ``PYTEST_ADDOPTS`` is part of the command line.
    """
    return is_asked_for_now(config) or any(_has_ini_value(config, row.ini) for row in ROWS)


def refuse_misspelt(parser: pytest.Parser, arguments: Sequence[str]) -> None:
    """Refuse an option that begins like ours and that nobody has, with the nearest one.

    Args:
        parser: Knows the options of all plugins and initial conftest files.
        arguments: The command line, ``addopts`` included.

    Raises:
        pytest.UsageError: for the first of them.
    """
    flags = {row.flag for row in ROWS if row.flag}
    names = (argument.partition("=")[0] for argument in arguments)
    if all(name in flags or not name.startswith(_OURS) for name in names):
        return  # as nearly always, and it costs nothing
    import pytest

    from pytest_ortbench.core.errors import nearest

    _, unknown = parser.parse_known_and_unknown_args(list(arguments))
    for name in (argument.partition("=")[0] for argument in unknown):
        if name.startswith(_OURS):
            near = nearest(name.replace("_", "-"), flags, cutoff=0.75)
            hint = f"Did you mean {near}?" if near else "'pytest --help' lists all options"
            raise pytest.UsageError(f"there is no option {name}. {hint}")


def is_asked_for_now(config: pytest.Config) -> bool:
    """Whether the command line sets any option of ours: a key is for every run of a project."""
    return any(row.flag and config.getoption(row.flag) is not None for row in ROWS)


def _has_ini_value(config: pytest.Config, key: str) -> bool:
    import pytest

    try:
        return config.getini(key) not in (None, [])
    except (TypeError, ValueError, pytest.UsageError):
        return True  # a value of the wrong type; read_options says so


def read_options(config: pytest.Config) -> Options:
    """Return what command line and ini file ask for; the command line replaces the ini value.

    Raises:
        pytest.UsageError: for a value that breaks a rule.
    """
    import pytest

    from pytest_ortbench.core.errors import UsageError

    try:
        return _options_of(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


def _options_of(config: pytest.Config) -> Options:
    from pytest_ortbench.plugin.options import Options

    values: dict[str, Any] = {}
    texts: dict[str, OptionText] = {}
    for row in ROWS:
        text = _text_of(config, row)
        if text is not None:
            texts[row.field] = text
            values[row.field] = _value(row, text)
        elif isinstance(row.default, Path):
            values[row.field] = config.invocation_params.dir / row.default
    options = Options(
        **values,
        given={name: ",".join(text.texts) for name, text in texts.items()},
        places={name: text.place for name, text in texts.items()},
        typed=frozenset(name for name, text in texts.items() if text.is_typed),
    )
    for row in ROWS:
        if row.rule and row.field in texts:
            _keep_rule(row, texts[row.field], options)
    return options


def _value(row: OptionRow, text: OptionText) -> Any:
    """Return what a reader makes of a text; what it did not foresee is said in one line, too."""
    from pytest_ortbench.core.errors import UsageError, says

    try:
        return import_named(row.reader)(text)
    except (OSError, OverflowError, RecursionError) as error:
        written = ",".join(text.texts)
        if isinstance(error, OSError) and error.strerror:
            shown = written if len(written) <= _LONGEST_SHOWN else f"{written[:_LONGEST_SHOWN]}…"
            raise UsageError(
                f"the file {shown!r} can't be used. {says('The system', error.strerror)}",
                place=text.place,
                hint=f"Name another file, e.g. {text.place}=FILE with its path in place of FILE",
            ) from error
        raise UsageError(
            f"{written!r} can't be used. {says('Python', str(error))}",
            place=text.place,
            hint="Write another value",
        ) from error


def _keep_rule(row: OptionRow, text: OptionText, options: Options) -> None:
    """Check an option that was set against the options that its rule names."""
    rule = import_named(row.rule)
    own = {
        "value": getattr(options, row.field),
        "place": text.place,
        "is_typed": text.is_typed,
    }
    names = inspect.signature(rule).parameters
    rule(**{name: own[name] if name in own else getattr(options, name) for name in names})


def _text_of(config: pytest.Config, row: OptionRow) -> OptionText | None:
    """Return what the user set, the command line first."""
    import pytest

    from pytest_ortbench.core.errors import UsageError
    from pytest_ortbench.core.option_text import OptionText

    folder = Path(config.invocation_params.dir)
    written = config.getoption(row.flag) if row.flag else None
    if written is not None:
        texts = tuple(_texts(written))
        return OptionText(texts=texts, place=row.flag, is_typed=True, base=folder)
    overrides: list[str] = config.getoption("override_ini") or []
    is_typed = any(text.startswith(f"{row.ini}=") for text in overrides)
    place = f"-o {row.ini}" if is_typed else row.ini
    if not is_typed and config.inipath is not None:
        place, folder = f"{row.ini} in {config.inipath}", config.inipath.parent
    try:
        configured = config.getini(row.ini)
    except (TypeError, ValueError, pytest.UsageError) as error:
        # pytest checks the type, but names key and file in some messages only.
        text = str(error)
        raise UsageError(
            text,
            place="" if row.ini in text else place,
            hint=f"Write e.g. {row.ini} = {_EXAMPLES[row.ini_type]}",
        ) from error
    if configured is None or configured == []:
        return None
    texts = tuple(_texts(configured))
    return OptionText(texts=texts, place=place, is_typed=is_typed, base=folder)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, list):
        return map(str, value)
    return ["true" if value else "false"] if isinstance(value, bool) else [str(value)]
