"""Options and ini keys, handed to pytest, and whether any of them is set.

Nothing is imported here that pytest itself has not imported: this module is part of what every
project pays that merely has the plugin installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.option_registry import OPTIONS, OptionSpec

if TYPE_CHECKING:
    import pytest


def add_options(parser: pytest.Parser) -> None:
    """Register every option and its ini key; for ``pytest_addoption``."""
    group = parser.getgroup(
        "ortbench",
        "ortbench: benchmark ONNX models (lists are repeatable and split at commas; every option "
        "is an ini key too, --ort-time is ort_time, and the command line replaces the ini value)",
    )
    for spec in OPTIONS:
        parser.addini(spec.ini, _ini_help(spec), type=spec.ini_type, default=None)
        if not spec.flag:
            continue
        # Texts and no types here: argparse would answer a wrong value with the usage of pytest
        # instead of the rule. read_options says what is wrong and where.
        text = spec.help.replace("%", "%%")
        if spec.kind == "flag":
            group.addoption(spec.flag, action="store_true", default=None, help=text)
        else:
            action = "append" if spec.kind in ("list", "lines") else "store"
            group.addoption(spec.flag, action=action, default=None, metavar=spec.metavar, help=text)


def _ini_help(spec: OptionSpec) -> str:
    return f"{spec.help}; same as {spec.flag}" if spec.flag else spec.help


def is_asked_for(config: pytest.Config) -> bool:
    """Whether command line or ini file set any option of ours, rightly or wrongly.

    What stands in ``addopts`` or ``PYTEST_ADDOPTS`` is part of the command line.
    """
    if any(spec.flag and config.getoption(spec.flag) is not None for spec in OPTIONS):
        return True
    return any(_has_ini_value(config, spec.ini) for spec in OPTIONS)


def _has_ini_value(config: pytest.Config, key: str) -> bool:
    import pytest

    try:
        return config.getini(key) not in (None, [])
    except (TypeError, ValueError, pytest.UsageError):
        return True  # a value of the wrong type; read_options says so
