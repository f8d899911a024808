"""Chains in documents: written and read back, and what can't be is refused with its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import LaterLink, Provider
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.planning.provider_options import with_options_of_links
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.schema.document import decode_run, encode_run
from pytest_ortbench.schema.meaning import faults_of
from pytest_ortbench.schema.wire import from_plain, to_plain
from tests.results_factory import make_case, make_result, make_run

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
CHAIN = with_options_of_links(parse_provider("tensorrt:1~cuda~cpu"), {"cuda": {"use_tf32": "0"}})
PLACED = Placement(
    provider=CPU,
    executed={CPU: 4},
    links=(
        LinkPlacement(provider=CPU, label="cpu", nodes=4),
        LinkPlacement(provider=CUDA, label="cuda", idle="taken", order="cuda~cpu", executed=3),
    ),
)


def test_a_document_keeps_the_chain_and_what_its_links_ran() -> None:
    case = replace(make_case(), provider=CHAIN)
    run = make_run([make_result(case=case, placement=PLACED)])
    [result] = decode_run(encode_run(run), place="run.json").cases
    assert result.case.provider == CHAIN
    assert result.case.provider.links[1].options == {"use_tf32": "0"}
    assert result.placement == PLACED
    assert from_plain(Provider, to_plain(CHAIN)) == CHAIN


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        (replace(CHAIN, role="engine"), "$.then"),
        (replace(CHAIN, device="0~cuda"), "$.alias"),
        (replace(CHAIN, then=(LaterLink(alias="cuda~cpu", name=CUDA),)), "$.alias"),
        (replace(CHAIN, then=(LaterLink(alias="trt", name=TENSORRT),)), "$.then"),
    ],
)
def test_a_chain_that_can_not_be(changed: Provider, path: str) -> None:
    assert path in [fault.path for fault in faults_of(changed)]


FIRST, SECOND = PLACED.links


@pytest.mark.parametrize(
    ("links", "path"),
    [
        ((SECOND, FIRST), "$.links"),
        ((replace(FIRST, idle="none"), SECOND), "$.links[0].idle"),
        ((FIRST, replace(SECOND, idle="busy")), "$.links[1].idle"),
        ((FIRST, replace(SECOND, order="")), "$.links[1].order"),
        ((FIRST, replace(SECOND, executed=None)), "$.links[1].order"),
        ((FIRST, replace(SECOND, idle="none")), "$.links[1].order"),
    ],
)
def test_links_that_contradict_themselves(links: tuple[LinkPlacement, ...], path: str) -> None:
    assert not list(faults_of(PLACED))
    assert path in [fault.path for fault in faults_of(replace(PLACED, links=links))]
