"""Plug-ins that a project has configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.runtimes.plugin_config import ConfiguredPlugin, configured_plugins


def write(folder: Path, text: str, name: str = "ortbench.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_without_a_configuration_there_are_none(tmp_path: Path) -> None:
    write(tmp_path, "[project]\nname = 'x'\n", "pyproject.toml")
    assert configured_plugins(tmp_path / "tests") == ()


@pytest.mark.parametrize(
    ("name", "header"),
    [("ortbench.toml", "plugins"), ("pyproject.toml", "tool.ortbench.plugins")],
)
def test_a_library_is_relative_to_the_file_that_names_it(
    tmp_path: Path, name: str, header: str
) -> None:
    text = f'[{header}.acme]\nlibrary = "lib/libacme.so"\nprovider = "AcmeExecutionProvider"\n'
    write(tmp_path, text, name)
    assert configured_plugins(tmp_path / "models" / "deep") == (
        ConfiguredPlugin(
            alias="acme",
            provider="AcmeExecutionProvider",
            library=str(tmp_path / "lib/libacme.so"),
        ),
    )


def test_a_known_provider_keeps_its_alias_and_name(tmp_path: Path) -> None:
    write(tmp_path, '[plugins.qnn]\noptions = ["new_option"]\n[plugins.ggml]\nlibrary = "/l.so"\n')
    qnn, ggml = configured_plugins(tmp_path)
    assert (qnn.alias, qnn.provider, qnn.library) == ("qnn", "QNNExecutionProvider", "")
    assert qnn.options == ("new_option",)
    assert (ggml.alias, ggml.provider, ggml.library) == ("ggml", "ggml", "/l.so")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[plugins]\nacme = 3\n", "not a table. Write the entry as a table, e.g. {"),
        (
            "[plugins.acme]\nlibary = 'x'\n",
            "the key 'libary' is not known. Did you mean 'library'?",
        ),
        ("[plugins.acme]\nprovider = 'x'\n", "the plug-in has neither a library nor options"),
        ("[plugins.acme]\nlibrary = ''\n", "library is ''"),
        ("[plugins]\nacme = 'lib.so'\n", '{ library = "lib.so" }'),
        ("[plugins.acme]\noptions = 'speed'\n", "options is 'speed', not a list"),
        ("[plugins.acme]\noptions = 'a, b'\n", 'Write options = ["a", "b"]'),
        ("[plugins.acme]\noptions = {a = 2}\n", "--ort-provider-option=acme.a=2"),
        ("plugins = 3\n", "plugins is 3, not a table"),
        ("[plugins\n", "not valid TOML"),
    ],
)
def test_a_wrong_table_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        configured_plugins(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path / "ortbench.toml") in str(caught.value)
