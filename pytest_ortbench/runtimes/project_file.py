"""Where a project writes its own tables: ``ortbench.toml``, or ``[tool.ortbench]``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.schema.toml_text import read_toml_file

#: An entry of each table, and a line of it.
_EXAMPLES = {
    "models": ("resnet50", 'file = "resnet50.onnx"'),
    "plugins": ("acme", 'library = "/opt/acme/libacme_ep.so"'),
    "precisions": ("mine", 'base = "fp16"'),
    "runtimes": ("old", 'requirements = ["onnxruntime==1.20.1"]'),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTable:
    """One table of the configuration.

    Attributes:
        file: Where it stands; relative paths in it start at this file's folder.
        name: How the file calls it: ``tool.ortbench.plugins``.
        entries: What it holds.
    """

    file: Path
    name: str
    entries: Mapping[str, object]

    def place(self, key: str) -> str:
        """Say where an entry stands, for messages."""
        return f"{self.file} [{self.name}.{key}]"


def project_table(root: Path, key: str) -> ProjectTable | None:
    """Find the table that applies in ``root``: that of the nearest folder that has one.

    Args:
        root: Where to start.
        key: ``plugins`` finds ``[plugins]`` in ``ortbench.toml`` and ``[tool.ortbench.plugins]``
            in ``pyproject.toml``.

    Raises:
        UsageError: for a file that can't be read, and what should be a table and is none.
    """
    for folder in (root, *root.parents):
        for name, path in (
            ("ortbench.toml", (key,)),
            ("pyproject.toml", ("tool", "ortbench", key)),
        ):
            file = folder / name
            if file.is_file():
                entries = _within(read_toml_file(file), path, file)
                if entries is not None:
                    return ProjectTable(file=file, name=".".join(path), entries=entries)
        if (folder / "pyproject.toml").is_file():
            # A project ends here; what lies above is another one.
            break
    return None


def as_key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def entry_to_write(root: Path, key: str, name: str) -> str:
    """Return where a further entry is read, for a step: ``[plugins.acme] in ortbench.toml``.

    Args:
        root: Where the project's tables are looked for.
        key: As of :func:`project_table`.
        name: The entry.

    Raises:
        UsageError: as of :func:`project_table`.
    """
    table = project_table(root, key)
    written = as_key(name)
    if table is None:
        return f"[tool.ortbench.{key}.{written}] in pyproject.toml"
    file = table.file.name if table.file.parent == root else table.file
    return f"[{table.name}.{written}] in {file}"


def _within(
    content: Mapping[str, object], path: tuple[str, ...], file: Path
) -> Mapping[str, object] | None:
    value: object = content
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    if not isinstance(value, Mapping):
        name, line = _EXAMPLES[path[-1]]
        raise UsageError(
            f"{'.'.join(path)} is {value!r}, not a table",
            place=str(file),
            hint=f"Write a table for each entry, e.g. [{'.'.join(path)}.{name}], and below it "
            f"{line}",
        )
    return value
