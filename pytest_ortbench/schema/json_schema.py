"""JSON Schema of the run document, with the descriptions that stand in the types' docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import TypeAlias, cast

import msgspec

from pytest_ortbench.core.outcome import FAILURE_KINDS, PHASES
from pytest_ortbench.core.run import SCHEMA_VERSION, Run

#: A JSON Schema, or a part of one.
JsonSchema: TypeAlias = "dict[str, object]"

_FIELD = re.compile(r"^(\w+): (.*)$")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a docstring says about a type.

    Attributes:
        summary: The text before the attributes, one paragraph a line.
        fields: What each attribute is, by name.
    """

    summary: str
    fields: dict[str, str]


def describe_type(kind: type) -> Description:
    """Read the Google-style docstring of a data type."""
    text = inspect.getdoc(kind) or ""
    summary, _, attributes = text.partition("\nAttributes:\n")
    fields: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n" + attributes).splitlines():
        match = _FIELD.match(line)
        if match:
            name = match[1]
            fields[name] = match[2]
        elif name and line.strip():
            fields[name] += f" {line.strip()}"
    return Description(
        summary=_unmarked(" ".join(summary.split())),
        fields={name: _unmarked(line) for name, line in fields.items()},
    )


def document_types() -> list[type]:
    """Return every data type of the document, in the order in which it mentions them."""
    return _types_within(msgspec.inspect.type_info(Run), [])


def json_schema() -> JsonSchema:
    """Return the JSON Schema (2020-12) of a run document of the present version.

    A document may hold fields beyond it; readers ignore them.
    """
    # There and back: what msgspec gives holds tuples, which no JSON reader would give.
    schema = cast(JsonSchema, msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(Run))))
    definitions = cast("dict[str, JsonSchema]", schema["$defs"])
    for kind in document_types():
        _explain(definitions[kind.__name__], describe_type(kind))
    _properties(definitions["Run"])["schema_version"]["const"] = SCHEMA_VERSION
    _properties(definitions["CaseResult"])["status"]["enum"] = ["measured", *FAILURE_KINDS]
    _properties(definitions["Failure"])["kind"]["enum"] = list(FAILURE_KINDS)
    _properties(definitions["Failure"])["phase"]["enum"] = list(PHASES)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pytest-ortbench run document",
        **schema,
    }


def _explain(definition: JsonSchema, description: Description) -> None:
    definition["description"] = description.summary
    for name, schema in _properties(definition).items():
        # Of mappings only newer releases of msgspec tell that they are empty by default.
        if schema.get("default") == {}:
            del schema["default"]
        text = description.fields.get(name)
        if text is None:
            continue
        # Beside "$ref" a description is allowed since draft 2019-09.
        schema["description"] = text


def _properties(definition: JsonSchema) -> dict[str, JsonSchema]:
    return cast("dict[str, JsonSchema]", definition["properties"])


def _types_within(info: msgspec.inspect.Type, types: list[type]) -> list[type]:
    """Collect the dataclasses that ``info`` mentions into ``types``, depth first."""
    if isinstance(info, msgspec.inspect.DataclassType):
        if info.cls not in types:
            types.append(info.cls)
            for field in info.fields:
                _types_within(field.type, types)
    elif isinstance(info, msgspec.inspect.UnionType):
        for member in info.types:
            _types_within(member, types)
    elif isinstance(info, msgspec.inspect.VarTupleType):
        _types_within(info.item_type, types)
    elif isinstance(info, msgspec.inspect.TupleType):
        for member in info.item_types:
            _types_within(member, types)
    elif isinstance(info, msgspec.inspect.DictType):
        _types_within(info.value_type, types)
    return types


def _unmarked(text: str) -> str:
    """Text without the roles and double backquotes of reStructuredText, in the words of JSON."""
    plain = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    return plain.replace("`None`", "`null`")
