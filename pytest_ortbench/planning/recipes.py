"""Recipes by name: those that ship, and ``[tool.ortbench.precisions.NAME]`` of the project."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, near_and_known
from pytest_ortbench.core.precision import PRECISIONS
from pytest_ortbench.core.recipe import BASES, CALIBRATIONS, OFFLINE_LEVELS, WEIGHT_TYPES, Recipe
from pytest_ortbench.runtimes.project_file import (
    ProjectTable,
    as_key,
    entry_to_write,
    project_table,
)

#: Settings that every base takes.
_ALWAYS = ("base", "sqnr_floor")

#: Settings that are lists of names, and an example of each and of texts without a default.
_LISTS = ("op_types", "nodes_to_exclude", "block_list")
_EXAMPLES = {
    "op_types": "MatMul",
    "nodes_to_exclude": "/head/MatMul",
    "block_list": "Resize",
    "calibration_data": "calibration",
    "weight_type": "int8",
    "activation_type": "uint8",
}

_BLOCK_SIZES = (16, 32, 64, 128, 256)
_ACCURACY_LEVELS = range(5)


def recipes(root: Path) -> dict[str, Recipe]:
    """Return every recipe that is known in ``root``, by the name of its precision.

    Raises:
        UsageError: for a configuration that breaks a rule.
    """
    known = {base: shipped_recipe(base) for base in BASES}
    table = project_table(root, "precisions")
    if table is not None:
        known.update(
            {name: _configured(name, entry, table) for name, entry in table.entries.items()}
        )
    return known


def shipped_recipe(base: str) -> Recipe:
    """Return the recipe of a base, as far as it depends on this machine.

    - Dynamic: unsigned weights. *Seen* on CPUs with and without VNNI: two convolutions with signed
      weights took ten times as long as in float32, with unsigned ones about as long; and unsigned
      products can't saturate.
    - Static: unsigned activations and signed weights, as ONNX Runtime advises for x86-64, with
      seven bits for the weights where products may saturate; signed activations on ARM.
    """
    if base == "int8-dynamic":
        return Recipe(name=base, base=base, weight_type="uint8")
    if base == "int8-static":
        arm = platform.machine().lower() in ("arm64", "aarch64")
        return Recipe(
            name=base,
            base=base,
            weight_type="int8",
            activation_type="int8" if arm else "uint8",
            reduce_range=products_may_saturate(),
        )
    return Recipe(name=base, base=base)


def products_may_saturate(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this CPU adds two 8-bit products in 16 bits: x86-64 without VNNI.

    Where its flags can't be read it is taken to have none.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return True
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    return not any("vnni" in flag or flag == "amx_int8" for flag in flags)


def check_precisions(
    names: tuple[str, ...],
    *,
    place: str,
    known: Mapping[str, Recipe],
    variants: tuple[str, ...],
    root: Path,
) -> None:
    """Refuse a name that is neither a precision nor a recipe nor a variant.

    Args:
        names: What was asked for.
        place: Where.
        known: Recipes of the project and those that ship.
        variants: Names of files of families.
        root: The project's folder.

    Raises:
        UsageError: with the nearest known name.
    """
    everything = list(dict.fromkeys((*PRECISIONS, *known, *variants)))
    for name in names:
        if name not in everything:
            meant = _meant(name, everything)
            raise UsageError(
                f"{name!r} is not a known precision",
                place=place,
                hint=f"{meant}?"
                if meant
                else f"{near_and_known(name, everything)}. To define {name!r} yourself, write a "
                'line such as base = "fp16" under '
                f"{entry_to_write(root, 'precisions', name)}",
            )


def _meant(name: str, known: Sequence[str]) -> str:
    """``int8`` may mean two precisions; the letters alone would lead to ``int4``."""
    starting = [other for other in known if other.startswith(f"{name}-")]
    return f"Did you mean {' or '.join(map(repr, starting))}" if len(starting) > 1 else ""


def _near_and_known(name: str, known: Sequence[str]) -> str:
    meant = _meant(name, known)
    if not meant:
        return near_and_known(name, known)
    return f"{meant}? If not, choose one of: {', '.join(known)}"


def _configured(name: str, entry: object, table: ProjectTable) -> Recipe:
    place = table.place(name)
    if not isinstance(entry, Mapping):
        words = entry if isinstance(entry, list) else [entry]
        base = next((word for word in words if isinstance(word, str) and word in BASES), "fp16")
        one = "A precision has one base. " if len(words) > 1 else ""
        raise UsageError(
            f"the entry is {entry!r}, not a table",
            place=place,
            hint=f'{one}Write e.g. {as_key(name)} = {{ base = "{base}" }}',
        )
    # A graph that is only simplified needs no other word for it.
    alone = "simplified" if entry.get("simplify") is True else None
    base = entry.get("base", name if name in BASES else alone)
    if name == "native" or (name in BASES and base != name):
        raise UsageError(
            f"{name!r} is a built-in name with a fixed meaning",
            place=place,
            hint="Remove this table"
            if name == "native"
            else f"Give your precision another name, e.g. my-{name}",
        )
    if base not in BASES:
        raise UsageError(
            "the key 'base' is missing"
            if base is None
            else f"base is {base!r}, which is not a precision to start from",
            place=place,
            hint=_base_for(entry) if base is None else _near_and_known(str(base), list(BASES)),
        )
    allowed = (*_ALWAYS, *BASES[str(base)], *(("simplify",) if base == "simplified" else ()))
    for key in entry:
        if key not in allowed:
            raise UsageError(
                f"a precision made from {base} has no setting {key!r}",
                place=place,
                hint=_place_of_setting(key, allowed),
            )
    settings = {key: value for key, value in entry.items() if key not in _ALWAYS}
    floor = entry.get("sqnr_floor")
    if floor is not None:
        settings["sqnr_floor_db"] = _number(floor, "sqnr_floor", place, " of decibels", "20")
    return _checked(replace(shipped_recipe(str(base)), name=name), settings, table, place)


def _base_for(entry: Mapping[str, object]) -> str:
    """The step for a table without a base: the bases that have its settings."""
    written = [key for key in entry if key not in _ALWAYS]
    fitting = [base for base, allowed in BASES.items() if {*written} <= {*allowed}]
    first, *others = sorted(fitting or BASES, key=lambda base: base != "fp16")
    having = f" with {', '.join(written)}" if written and fitting else ""
    more = f". Other bases{having}: {', '.join(others)}" if others else ""
    return f'Write e.g. base = "{first}"{more}'


def _place_of_setting(key: str, allowed: Sequence[str]) -> str:
    """The step for a setting that a base does not have: other bases may."""
    having = [other for other, settings in BASES.items() if key in settings]
    if having:
        return f'Leave out {key}, or write base = "{having[0]}", which has it'
    return near_and_known(key, allowed)


def _checked(
    recipe: Recipe, settings: dict[str, object], table: ProjectTable, place: str
) -> Recipe:
    """Return ``recipe`` with settings, each of its field's kind and within its rule."""
    kinds = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
    values: dict[str, object] = {}
    for key, value in settings.items():
        present = kinds[key]
        if key == "sqnr_floor_db":
            values[key] = value
        elif isinstance(present, bool):
            values[key] = _kind(
                value, bool, key, place, "true or false", f"{key} = true or {key} = false"
            )
        elif key in _LISTS:
            values[key] = _names(value, key, place)
        elif isinstance(present, int):
            values[key] = _whole(value, key, place)
        elif isinstance(present, float):
            values[key] = _number(value, key, place, example=f"{present or 0.5:g}")
        else:
            values[key] = _kind(
                value,
                str,
                key,
                place,
                "text in quotes",
                f'e.g. {key} = "{_EXAMPLES.get(key, present)}"',
            )
    changed = replace(recipe, **values)  # type: ignore[arg-type]  # each value is of its field's kind
    _one_of(changed.weight_type or "int8", WEIGHT_TYPES, "weight_type", place)
    _one_of(changed.activation_type or "int8", WEIGHT_TYPES, "activation_type", place)
    _one_of(changed.calibration, CALIBRATIONS, "calibration", place)
    _one_of(changed.level, OFFLINE_LEVELS, "level", place)
    if not 50 < changed.percentile <= 100:
        percent = 100 * changed.percentile  # whoever writes 0.99 means 99 %
        raise UsageError(
            f"percentile is {changed.percentile:g}, but must be above 50 and at most 100",
            place=place,
            hint=f"Write e.g. percentile = {percent if 50 < percent <= 100 else 99.99:.6g}",
        )
    if changed.block_size not in _BLOCK_SIZES:
        raise UsageError(
            f"block_size is {changed.block_size}, but ONNX Runtime has no kernels for this size",
            place=place,
            hint=f"Write one of {', '.join(map(str, _BLOCK_SIZES))} for block_size",
        )
    if changed.accuracy_level not in _ACCURACY_LEVELS:
        raise UsageError(
            f"accuracy_level is {changed.accuracy_level}, but levels go from 0 to 4",
            place=place,
            hint="Write e.g. accuracy_level = 4",
        )
    if changed.activation_type == "int8" and changed.weight_type == "uint8":
        raise UsageError(
            'ONNX Runtime has no kernels for activation_type = "int8" with weight_type = "uint8"',
            place=place,
            hint='Write activation_type = "uint8"',
        )
    if changed.calibration_data:
        return replace(changed, calibration_data=str(table.file.parent / changed.calibration_data))
    return changed


def _kind(value: object, kind: type, key: str, place: str, rule: str, example: str) -> object:
    if not isinstance(value, kind):
        raise UsageError(
            f"{key} is {_in_toml(value)}, not {rule}", place=place, hint=f"Write {example}"
        )
    return value


def _in_toml(value: object) -> str:
    """A value as a message shows it; ``true`` and ``false`` as TOML writes them."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _names(value: object, key: str, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(
            f"{key} is {_in_toml(value)}, not a list of names",
            place=place,
            hint=f"Write {key} = [{_quoted(value)}]"
            if isinstance(value, str)
            else f'Write e.g. {key} = ["{_EXAMPLES[key]}"]',
        )
    return tuple(value)


def _quoted(text: str) -> str:
    """Names that were written as one text, each in quotes."""
    return ", ".join(f'"{name.strip()}"' for name in text.split(","))


def _whole(value: object, key: str, place: str) -> int:
    least = 0 if key == "accuracy_level" else 1
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        rule = "from 0 to 4" if key == "accuracy_level" else "above 0"
        example = 4 if key == "accuracy_level" else 128
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            example = max(int(value), least)  # it stands in quotes
        if key == "block_size" and example not in _BLOCK_SIZES:
            example = min(_BLOCK_SIZES, key=lambda size: abs(size - example))
        text = "the text " if isinstance(value, str) else ""
        raise UsageError(
            f"{key} is {text}{_in_toml(value)}, not a whole number {rule}",
            place=place,
            hint=f"Write e.g. {key} = {example}",
        )
    return value


def _number(value: object, key: str, place: str, unit: str = "", example: str = "0.5") -> float:
    # A floor of NaN would hold nothing up, and one of -inf would let everything through.
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    text = ""
    if isinstance(value, str):
        number = re.match(r"[+-]?\d+(\.\d+)?", value.strip())
        example = number[0] if number else example  # it stands in quotes
        text = "the text "
    raise UsageError(
        f"{key} is {text}{_in_toml(value)}, not a {'' if text else 'finite '}number{unit}",
        place=place,
        hint=f"Write e.g. {key} = {example}",
    )


def _one_of(value: str, known: tuple[str, ...], key: str, place: str) -> None:
    if value not in known:
        raise UsageError(
            f"{value!r} is not a value of {key}", place=place, hint=near_and_known(value, known)
        )
