"""Instruction sets that some of the compared machines have and others lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Flags of the kernel by the name of an instruction set; any of them says that it is there.
_X86: dict[str, tuple[str, ...]] = {
    "AVX2": ("avx2",),
    "AVX-512": ("avx512f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "AVX-512 BF16": ("avx512_bf16",),
    "AVX-512 FP16": ("avx512_fp16",),
    "AMX": ("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
}
_ARM: dict[str, tuple[str, ...]] = {
    "dot products": ("asimddp",),
    "I8MM": ("i8mm",),
    "half precision": ("asimdhp",),
    "BF16": ("bf16",),
    "SVE": ("sve",),
    "SME": ("sme",),
}
_SETS = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """An instruction set that not all machines of its architecture have.

    Attributes:
        name: What it is called: ``VNNI``.
        on: Machines that have it.
        off: Machines that lack it.
    """

    name: str
    on: tuple[str, ...]
    off: tuple[str, ...]


def differing_sets(machines: Mapping[str, Mapping[str, str]]) -> tuple[Differing, ...]:
    """Return the instruction sets that machines differ in.

    A machine whose facts tell no flags, or no known architecture, is neither with nor without.

    Args:
        machines: Stable facts by the name of the machine.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for machine, facts in machines.items():
        flags = frozenset(facts.get("cpu_flags", "").split())
        known = _SETS.get(facts.get("architecture", ""), {}) if flags else {}
        for name, alternatives in known.items():
            on, off = found.setdefault(name, ([], []))
            (off if flags.isdisjoint(alternatives) else on).append(machine)
    return tuple(
        Differing(name=name, on=tuple(on), off=tuple(off))
        for name, (on, off) in found.items()
        if on and off
    )
