"""Plug-in providers that the project has configured: ``[tool.ortbench.plugins.NAME]``.

A plug-in whose package follows the convention needs none of this. It is for a library that lies
anywhere, and for options that we do not know of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.provider_kinds import BY_NAME, KINDS
from pytest_ortbench.runtimes.project_file import ProjectTable, project_table

_KEYS = ("library", "provider", "options")
_EXAMPLES = {
    "library": 'Write e.g. library = "/opt/acme/libacme_ep.so"',
    "provider": 'Write the name that ONNX Runtime has for it, e.g. provider = "AcmeEP"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredPlugin:
    """One table of the configuration.

    Attributes:
        alias: What ``--ort-providers`` calls it.
        provider: ONNX Runtime's name of the provider.
        library: Path of its library; empty where only options are declared.
        options: Options that it takes besides those that we know.
    """

    alias: str
    provider: str
    library: str = ""
    options: tuple[str, ...] = ()


def configured_plugins(root: Path) -> tuple[ConfiguredPlugin, ...]:
    """Read the configuration that applies in ``root``.

    Raises:
        UsageError: for a file that can't be read, and a table that breaks a rule.
    """
    table = project_table(root, "plugins")
    if table is None:
        return ()
    return tuple(_read(name, entry, table) for name, entry in table.entries.items())


def _read(name: str, entry: object, table: ProjectTable) -> ConfiguredPlugin:
    place = table.place(name)
    if not isinstance(entry, Mapping):
        raise UsageError(
            f"the entry is {entry!r}, not a table",
            place=place,
            hint="Write the entry as a table, e.g. "
            f'{{ library = "{entry if isinstance(entry, str) else "/opt/acme/libacme_ep.so"}" }}',
        )
    for key in entry:
        if key not in _KEYS:
            raise UsageError(
                f"the key {key!r} is not known", place=place, hint=did_you_mean(key, _KEYS)
            )
    kind = KINDS.get(name) or BY_NAME.get(name)
    provider = _string(entry, "provider", place) or (kind.name if kind is not None else name)
    library = _string(entry, "library", place)
    options = entry.get("options", ())
    if not isinstance(options, list | tuple) or not all(isinstance(key, str) for key in options):
        raise UsageError(
            f"options is {options!r}, not a list of the names of options",
            place=place,
            hint=_as_names(name, options),
        )
    if not library and not options:
        raise UsageError(
            "the plug-in has neither a library nor options",
            place=place,
            hint=f"{_EXAMPLES['library']}. Of an installed package, 'pip show -f PACKAGE' lists "
            "this file",
        )
    return ConfiguredPlugin(
        alias=kind.alias if kind is not None else name,
        provider=provider,
        # Relative to the file that says so. Whether it exists, only the runtime can tell.
        library=str(table.file.parent / library) if library else "",
        options=tuple(options),
    )


def _as_names(plugin: str, options: object) -> str:
    """Return the next step where something else stands in place of names of options."""
    if isinstance(options, Mapping) and options:
        name, value = next(iter(options.items()))
        listed = ", ".join(f'"{each}"' for each in options)
        return (
            f"Write options = [{listed}], and set a value on the command line: "
            f"--ort-provider-option={plugin}.{name}={value}"
        )
    if isinstance(options, str):
        listed = ", ".join(f'"{each.strip()}"' for each in options.split(","))
        return f"Write options = [{listed}]"
    return 'Write e.g. options = ["device_id"]'


def _string(entry: Mapping[str, object], key: str, place: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str) or (key in entry and not value):
        raise UsageError(
            f"{key} is {value!r}, but must be a string that is not empty",
            place=place,
            hint=_EXAMPLES[key],
        )
    return value
