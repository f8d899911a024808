"""Two names of one machine, as far as documents tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.same_machine import SameMachine, same_machines
from pytest_ortbench.fleet.report.view import build_view
from tests.fleet.numbers.runs import case, latency, run

FACTS = {"cpu": "C", "cpus_usable": "2", "memory": "8 GB", "system": "Linux 6.1"}


def on(name: str, host: str = "vm", devices: tuple[str, ...] = (), **facts: str) -> RunFacts:
    made = run(name, case(latency(1, 1, 1)))
    return replace(made, own_host=host, machine=FACTS | facts, devices=devices)


def test_runs_of_one_host_under_two_names_are_noticed() -> None:
    one = (SameMachine(host="vm", names=("small", "big")),)
    assert same_machines([on("small"), on("big")]) == one
    # How much of it a run may use, and its system, are no part of a machine.
    assert same_machines([on("small"), on("big", cpus_usable="1", system="Linux 6.2")]) == one


def test_other_machines_are_none_of_it() -> None:
    assert same_machines([on("small"), on("small")]) == ()
    assert same_machines([on("small"), on("big", host="rack")]) == ()
    assert same_machines([on("small"), on("big", memory="16 GB")]) == ()
    assert same_machines([on("small"), on("big", devices=("GPU",))]) == ()
    # A document that names no host says nothing of it.
    assert same_machines([on("small", host=""), on("big", host="")]) == ()


@pytest.mark.parametrize("fact", ["cpu", "memory"])
@pytest.mark.parametrize("value", ["", "unknown"])
def test_what_neither_document_knows_is_not_the_same(fact: str, value: str) -> None:
    assert same_machines([on("small", **{fact: value}), on("big", **{fact: value})]) == ()


def test_documents_without_facts_are_not_of_one_machine() -> None:
    bare = [replace(on(name), machine={}) for name in ("small", "big")]
    assert same_machines(bare) == ()


def test_a_comparison_of_machines_says_it_first() -> None:
    first = build_view([on("small"), on("big")]).warnings[0]
    for name in ("small", "big", "vm"):
        assert name in first
    other = build_view([on("small"), on("big", host="rack")]).warnings[0]
    assert other != first
