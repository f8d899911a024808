"""Imports this package from memory, in an interpreter where it is not installed.

The loader executes this module first, from its source, before anything else of ours exists; so it
imports the standard library only.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import marshal
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType


class SourceImporter(MetaPathFinder, InspectLoader):
    """Finds and loads the modules that it was given, and nothing else.

    Args:
        lines: By dotted name the name itself, the source of the module and its code, which may be
            empty: marshalled, in base64; all three as JSON, which is read when a module is
            imported, since most are not. Packages are the names that others extend.
        python: Which Python the codes are for, see :func:`this_python`; another one compiles the
            sources.
    """

    def __init__(self, lines: Mapping[str, bytes], python: Sequence[str] = ()) -> None:
        self._lines = lines
        self._takes_codes = list(python) == this_python()
        self._packages = {name.rpartition(".")[0] for name in lines}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system passes it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Find a module among those that were sent."""
        if fullname not in self._lines:
            return None
        return importlib.util.spec_from_loader(
            fullname, self, origin="sent by the host", is_package=self.is_package(fullname)
        )

    def is_package(self, fullname: str) -> bool:
        """Say whether other modules are inside this one."""
        return fullname in self._packages

    def get_source(self, fullname: str) -> str:
        """Return the source; tracebacks print lines of it."""
        return str(json.loads(self._lines[fullname])[1])

    def get_code(self, fullname: str) -> CodeType:
        """Take or compile a module, under the name that its file has, for tracebacks."""
        _, source, sent = json.loads(self._lines[fullname])
        if sent and self._takes_codes:
            code = marshal.loads(base64.b64decode(sent))
            assert isinstance(code, CodeType)
            return code
        name = fullname.replace(".", "/")
        place = f"{name}/__init__.py" if self.is_package(fullname) else f"{name}.py"
        return self.source_to_code(source, place)


def this_python() -> list[str]:
    """Implementation and version, and the magic number of its code in hexadecimal digits."""
    return [str(sys.implementation.cache_tag), importlib.util.MAGIC_NUMBER.hex()]


def install(lines: Mapping[str, bytes], python: Sequence[str] = ()) -> None:
    """Make modules importable, before any installed copy and without touching ``sys.path``.

    See :class:`SourceImporter`.
    """
    sys.meta_path.insert(0, SourceImporter(lines, python))
