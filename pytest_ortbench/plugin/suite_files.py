"""The files that say which models a test measures: its own, and those of pytest's options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ortbench.plugin.model_files import OnnxFile, is_suite
from pytest_ortbench.plugin.options import Options

_CONFTEST = "conftest.py"
#: What stands before the name of a file of options on the command line.
_OPTIONS_FILE = "@"


def files_of_models(item: pytest.Item, options: Options, *, names: bool) -> list[Path]:
    """Return the files that may say which models a test measures.

    Args:
        item: The test.
        options: Those of the run.
        names: Whether its marker names models.

    Returns:
        Nothing for what was typed on the command line: a model file, ``--ort-models``.
    """
    config = item.config
    if item.getparent(OnnxFile) is not None:
        return []
    if not names and options.models:
        if "models" in options.typed:
            return list(_files_of_options(config))
        return [] if config.inipath is None else [config.inipath]
    own = [] if is_suite(item.path) else [item.path]
    return [*own, *_conftests(item)]


def _files_of_options(config: pytest.Config) -> Iterator[Path]:
    for argument in config.invocation_params.args:
        text = str(argument)
        if text.startswith(_OPTIONS_FILE):
            yield config.invocation_params.dir / text.removeprefix(_OPTIONS_FILE)


def _conftests(item: pytest.Item) -> Iterator[Path]:
    """Files of hooks and fixtures from pytest's root down to the test."""
    root = item.config.rootpath
    for folder in reversed(item.path.parents):
        if folder.is_relative_to(root) and (folder / _CONFTEST).is_file():
            yield folder / _CONFTEST
