"""Instruction sets that machines differ in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.fleet.numbers.matrix import by_case
from pytest_ortbench.fleet.numbers.sentences import warnings
from pytest_ortbench.fleet.numbers.sides import Differing, differing_sets, lay_out_sides
from tests.fleet.numbers.runs import case, latency, run

OLD = "avx avx2 f16c fma sse4_2"
NEW = f"{OLD} avx512f avx512bw avx512_vnni amx_int8 amx_tile"
NARROW = f"{OLD} avx_vnni"


def facts(flags: str, architecture: str = "x86_64") -> dict[str, str]:
    return {"architecture": architecture, "cpu_flags": flags}


def test_sets_that_one_of_the_machines_lacks_are_named() -> None:
    found = differing_sets({"old": facts(OLD), "new": facts(NEW), "narrow": facts(NARROW)})
    assert found == (
        Differing(name="AVX-512", on=("new",), off=("old", "narrow")),
        Differing(name="VNNI", on=("new", "narrow"), off=("old",)),
        Differing(name="AMX", on=("new",), off=("old", "narrow")),
    )


@pytest.mark.parametrize(
    "other",
    [
        facts(NEW),
        # What nobody read is not missing.
        {"architecture": "x86_64"},
        facts("", "x86_64"),
        {"cpu_flags": OLD},
        # Another architecture has other sets.
        facts("asimd asimddp i8mm", "aarch64"),
        facts("rv64imafdc", "riscv64"),
    ],
)
def test_what_is_equal_or_unknown_differs_in_nothing(other: dict[str, str]) -> None:
    assert differing_sets({"new": facts(NEW), "other": other}) == ()


def test_machines_of_another_architecture_are_compared_among_themselves() -> None:
    found = differing_sets(
        {
            "intel": facts(NEW),
            "a76": facts("asimd asimdhp asimddp", "aarch64"),
            "v1": facts("asimd asimdhp asimddp i8mm bf16 sve", "arm64"),
        }
    )
    assert [(one.name, one.on, one.off) for one in found] == [
        (name, ("v1",), ("a76",)) for name in ("I8MM", "BF16", "SVE")
    ]


def test_a_comparison_warns_of_them_once_however_many_cases_there_are() -> None:
    cases = [case(latency(4, 4, 4), batch=batch) for batch in (1, 8)]
    runs = [
        replace(run(host, *cases), machine=facts(flags)) for host, flags in (("a", OLD), ("b", NEW))
    ]
    said, alike = (
        warnings(by_case(lay_out_sides(pair, "machine"), "latency_p50"), "machine", 0)
        for pair in (runs, [runs[0], replace(runs[1], machine=runs[0].machine)])
    )
    added = set(said) - set(alike)
    assert len(added) == 1
    [text] = added
    assert all(text.count(name) == 1 for name in ("AVX-512", "VNNI", "AMX"))
