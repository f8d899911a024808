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
import zlib
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

#: Where source and code stand in a line.
_SOURCE, _CODE = 1, 2


class SourceImporter(MetaPathFinder, InspectLoader):
    """Finds and loads the modules that it was given, and nothing else.

    Args:
        lines: By dotted name the name itself, the source of the module and its marshalled code,
            which may be empty, both compressed, in base64; all three as JSON, which is read when a
            module is imported, since most are not. Packages are the names that others extend.
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
        return self._sent(fullname, _SOURCE).decode("utf-8")

    def get_code(self, fullname: str) -> CodeType:
        """Take or compile a module, under the name that its file has, for tracebacks."""
        sent = self._sent(fullname, _CODE) if self._takes_codes else b""
        if sent:
            code = marshal.loads(sent)
            assert isinstance(code, CodeType)
            return code
        name = fullname.replace(".", "/")
        place = f"{name}/__init__.py" if self.is_package(fullname) else f"{name}.py"
        return self.source_to_code(self.get_source(fullname), place)

    def _sent(self, fullname: str, part: int) -> bytes:
        """A part of what was sent of a module; empty for a code that did not come."""
        packed = json.loads(self._lines[fullname])[part]
        return zlib.decompress(base64.b64decode(packed)) if packed else b""


def this_python() -> list[str]:
    """Implementation and version, and the magic number of its code in hexadecimal digits."""
    return [str(sys.implementation.cache_tag), importlib.util.MAGIC_NUMBER.hex()]


def install(lines: Mapping[str, bytes], python: Sequence[str] = ()) -> None:
    """Make modules importable, before any installed copy and without touching ``sys.path``.

    See :class:`SourceImporter`.
    """
    sys.meta_path.insert(0, SourceImporter(lines, python))
