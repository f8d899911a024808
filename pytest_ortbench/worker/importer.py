"""Imports this package from memory, in an interpreter where it is not installed.

The loader executes this module first, from its source, before anything else of ours exists; so it
imports the standard library only.
"""

from __future__ import annotations

import base64
import importlib.util
import marshal
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, MappingProxyType, ModuleType

_NOTHING: Mapping[str, str] = MappingProxyType({})


class SourceImporter(MetaPathFinder, InspectLoader):
    """Finds and loads the modules whose sources it was given, and nothing else.

    Args:
        sources: Source text by dotted name; packages are the names that others extend.
        python: Which Python ``codes`` are for, see :func:`this_python`; another one compiles the
            sources.
        codes: What the sources compile to, by the same names: marshalled, in base64.
    """

    def __init__(
        self,
        sources: Mapping[str, str],
        python: Sequence[str] = (),
        codes: Mapping[str, str] = _NOTHING,
    ) -> None:
        self._sources = sources
        self._codes = codes if list(python) == this_python() else _NOTHING
        self._packages = {name.rpartition(".")[0] for name in sources}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system passes it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Find a module among the sources."""
        if fullname not in self._sources:
            return None
        return importlib.util.spec_from_loader(
            fullname, self, origin="sent by the host", is_package=self.is_package(fullname)
        )

    def is_package(self, fullname: str) -> bool:
        """Say whether other modules are inside this one."""
        return fullname in self._packages

    def get_source(self, fullname: str) -> str:
        """Return the source; tracebacks print lines of it."""
        return self._sources[fullname]

    def get_code(self, fullname: str) -> CodeType:
        """Take or compile a module, under the name that its file has, for tracebacks."""
        if fullname in self._codes:
            code = marshal.loads(base64.b64decode(self._codes[fullname]))
            assert isinstance(code, CodeType)
            return code
        name = fullname.replace(".", "/")
        place = f"{name}/__init__.py" if self.is_package(fullname) else f"{name}.py"
        return self.source_to_code(self._sources[fullname], place)


def this_python() -> list[str]:
    """Implementation and version, and the magic number of its code in hexadecimal digits."""
    return [str(sys.implementation.cache_tag), importlib.util.MAGIC_NUMBER.hex()]


def install(
    sources: Mapping[str, str], python: Sequence[str] = (), codes: Mapping[str, str] = _NOTHING
) -> None:
    """Make ``sources`` importable, before any installed copy and without touching ``sys.path``.

    See :class:`SourceImporter`.
    """
    sys.meta_path.insert(0, SourceImporter(sources, python, codes))
