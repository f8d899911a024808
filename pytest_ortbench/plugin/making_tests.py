"""Which tests make the models that they measure: they, or what they call, name ``….measure``.

That must be known when tests are collected, since such a test is one item, whatever models are
named. So the code of a test is searched, that of its fixtures, and that of the functions and
classes of the project that these name, as far as names lead; libraries are not searched.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

_FIXTURE = "ortbench"
_CALL = "measure"
#: Methods that run without being named.
_UNNAMED = frozenset({"__call__", "__enter__", "__exit__", "__init__", "__iter__", "__post_init__"})


def measures_itself(metafunc: pytest.Metafunc) -> bool:
    """Whether a test, a fixture of it or what they call in the project measures a model."""
    fixtures = metafunc.definition._fixtureinfo.name2fixturedefs
    taken = [name for name in metafunc.fixturenames if name != _FIXTURE and fixtures.get(name)]
    search = _Search(metafunc.config.rootpath)
    search.reach(metafunc.function, anywhere=True)
    for name in taken:
        search.reach(fixtures[name][-1].func, anywhere=True)
    if metafunc.cls is not None:
        search.reach(metafunc.cls)
    return search.finds_call()


class _Search:
    """Follows names from functions to functions.

    Objects are told by their types alone: whatever else is asked of them may run code.

    Args:
        root: Folder of the project.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._left: list[FunctionType] = []
        self._noted: set[CodeType] = set()
        self._kinds: dict[type, None] = {}
        self._names: set[str] = set()

    def reach(self, value: object, *, anywhere: bool = False) -> None:
        """Note a function, a class, or an object by its class.

        Args:
            value: What a name stands for.
            anywhere: Whether a function may stand outside of the project.
        """
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, cached_property):
            value = value.func
        elif isinstance(value, MethodType | staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, FunctionType):
            self._note(value, anywhere=anywhere)
        elif isinstance(value, type):
            self._kinds.update(dict.fromkeys(value.__mro__))
        elif not isinstance(value, ModuleType):
            self._kinds.update(dict.fromkeys(type(value).__mro__))

    def finds_call(self) -> bool:
        """Follow all names; return whether a call is among what they lead to."""
        while self._left or self._reaches_methods():
            function = self._left.pop()
            parts = list(_parts(function.__code__))
            if any(map(_calls, parts)):
                return True
            names = {name for part in parts for name in part.co_names}
            self._names |= names
            for value in _values(function, names):
                self.reach(value)
        return False

    def _note(self, function: FunctionType, *, anywhere: bool) -> None:
        """Note a function that is to be searched, once; and what it wraps."""
        code = function.__code__
        if code in self._noted:
            return
        self._noted.add(code)
        if anywhere or Path(code.co_filename).is_relative_to(self._root):
            self._left.append(function)
        for wrapped in _wrapped_by(function):
            self.reach(wrapped, anywhere=anywhere)

    def _reaches_methods(self) -> bool:
        """Note methods of the classes whose names were seen; return whether one is new."""
        for kind in list(self._kinds):
            for name in (self._names | _UNNAMED) & vars(kind).keys():
                self.reach(vars(kind)[name])
        return bool(self._left)


def _wrapped_by(function: FunctionType) -> Iterator[object]:
    """Return what a function stands for, by functools and by hypothesis; ``None`` for nothing."""
    own = vars(function)
    yield own.get("__wrapped__")
    handle = own.get("hypothesis")
    if type(handle).__module__.partition(".")[0] == "hypothesis":
        yield vars(handle).get("inner_test")


def _values(function: FunctionType, names: set[str]) -> Iterator[Any]:
    """Return what names of a function stand for: in its module, around it, and in other modules."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for name in names:
        for value in (function.__globals__.get(name), sys.modules.get(name)):
            if isinstance(value, ModuleType):
                yield from (vars(value)[inner] for inner in names if inner in vars(value))
            elif value is not None:
                yield value


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Return a function's code, and that of functions inside of it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _parts(part)


def _calls(code: CodeType) -> bool:
    """Whether code reads an attribute called ``measure``."""
    return any(
        step.argval == _CALL and step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        for step in dis.get_instructions(code)
    )
