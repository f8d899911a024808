"""What is wrong with the types in a plain document: every place, where a decoder stops at one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from pytest_ortbench.schema.layout import Plain
from pytest_ortbench.schema.meaning import Fault, shown

_NAMES: dict[type, str] = {
    msgspec.inspect.IntType: "a whole number",
    msgspec.inspect.FloatType: "a number",
    msgspec.inspect.StrType: "text",
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.NoneType: "null",
    msgspec.inspect.VarTupleType: "a list",
    msgspec.inspect.TupleType: "a list",
    msgspec.inspect.DictType: "an object",
    msgspec.inspect.DataclassType: "an object",
}


def wrong_types(document: Plain, kind: type) -> Iterator[Fault]:
    """Yield every value of a plain document that has another type than it must.

    Args:
        document: The document, of the present schema version.
        kind: The type that it is read as: a run, or a case's result.
    """
    yield from _faults(document, "$", _type_info(kind))


@lru_cache(maxsize=2)
def _type_info(kind: type) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind)


def _faults(value: Plain, path: str, wanted: msgspec.inspect.Type) -> Iterator[Fault]:
    kinds = wanted.types if isinstance(wanted, msgspec.inspect.UnionType) else (wanted,)
    fitting = [kind for kind in kinds if _fits(value, kind)]
    if not fitting:
        names = " or ".join(dict.fromkeys(_NAMES.get(type(kind), "another") for kind in kinds))
        yield Fault(path=path, value=_said(value), rule=f"must be {names}")
        return
    kind = fitting[0]
    if isinstance(value, dict):
        yield from _in_object(value, path, kind)
    elif isinstance(value, list | tuple):
        yield from _in_list(value, path, kind)


def _in_object(value: dict[str, Plain], path: str, kind: msgspec.inspect.Type) -> Iterator[Fault]:
    if isinstance(kind, msgspec.inspect.DictType):
        for key, item in value.items():
            yield from _faults(item, f"{path}.{key[:60]}", kind.value_type)
    elif isinstance(kind, msgspec.inspect.DataclassType):
        for field in kind.fields:
            if field.name in value:
                yield from _faults(value[field.name], f"{path}.{field.name}", field.type)
            elif field.required:
                yield Fault(path=f"{path}.{field.name}", value="missing", rule="must be there")


def _in_list(
    value: list[Plain] | tuple[Plain, ...], path: str, kind: msgspec.inspect.Type
) -> Iterator[Fault]:
    if isinstance(kind, msgspec.inspect.VarTupleType):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", kind.item_type)
    elif isinstance(kind, msgspec.inspect.TupleType):
        if len(value) != len(kind.item_types):
            rule = f"must have {len(kind.item_types)} entries"
            yield Fault(path=path, value=_said(value), rule=rule)
            return
        for index, (item, wanted) in enumerate(zip(value, kind.item_types, strict=True)):
            yield from _faults(item, f"{path}[{index}]", wanted)


def _fits(value: Plain, kind: msgspec.inspect.Type) -> bool:
    inspect = msgspec.inspect
    if value is None:
        return isinstance(kind, inspect.NoneType)
    if isinstance(value, bool):
        return isinstance(kind, inspect.BoolType)
    if isinstance(value, int):
        return isinstance(kind, inspect.IntType | inspect.FloatType)
    if isinstance(value, float):
        whole = isinstance(kind, inspect.IntType) and value.is_integer()
        return whole or isinstance(kind, inspect.FloatType)
    if isinstance(value, str):
        return isinstance(kind, inspect.StrType)
    if isinstance(value, dict):
        return isinstance(kind, inspect.DictType | inspect.DataclassType)
    return isinstance(kind, inspect.VarTupleType | inspect.TupleType)


def _said(value: Plain) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else shown(value)
