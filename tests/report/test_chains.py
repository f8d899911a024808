"""Chains and fixed sizes as people see them: on the terminal, in details, in exports."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import CaseResult, Placement
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html.details import origin
from pytest_ortbench.report.legend import chain_lines, fixed_lines
from tests.results_factory import make_case, make_result, make_run

CPU, OPENVINO = "CPUExecutionProvider", "OpenVINOExecutionProvider"
PLACED = Placement(
    provider=CPU,
    executed={CPU: 4},
    links=(
        LinkPlacement(provider=CPU, label="cpu", nodes=5),
        LinkPlacement(
            provider=OPENVINO, label="openvino", idle="taken", order="openvino~cpu", executed=3
        ),
    ),
)


def on_chain(batch: int, placement: Placement = PLACED) -> CaseResult:
    case = replace(make_case(batch=batch), provider=parse_provider("cpu~openvino"))
    return make_result(case=case, placement=placement)


def told(case: Case, **knobs: str) -> CaseResult:
    session = replace(case.session, fixed_dims={"N": case.batch})
    return make_result(case=replace(case, session=session, knobs=knobs))


def test_cases_with_the_same_links_share_a_line() -> None:
    more = replace(PLACED, executed={CPU: 9})
    results = [on_chain(1), on_chain(2), on_chain(4, more), make_result()]
    first, other = chain_lines(shown_run(make_run(results)).entries)
    assert first.startswith("mobilenet_v2/native/cpu_openvino/b1 and 1 more: ")
    assert [
        text for text in ("cpu 4", "openvino 0", "openvino~cpu", "3") if text not in first
    ] == []
    assert other.startswith("mobilenet_v2/native/cpu_openvino/b4: ")


def test_details_name_each_link() -> None:
    [entry] = shown_run(make_run([on_chain(1)])).entries
    facts = "\n".join(origin(entry))
    assert [
        text for text in ("link cpu: 4", "5 nodes", "link openvino: 0") if text not in facts
    ] == []


def test_sizes_are_told_of_where_the_id_does_not_say_so() -> None:
    results = [
        told(make_case(provider="qnn:htp")),
        told(make_case(provider="qnn:htp", batch=2)),
        told(make_case(), **{"fix-dims": "on"}),
        make_result(),
    ]
    entries = shown_run(make_run(results)).entries
    first, other = fixed_lines(entries)
    assert first.startswith("mobilenet_v2/native/qnn:htp/b1: ")
    assert "N=1" in first
    assert "N=2" in other
    asked = next(entry for entry in entries if entry.result.case.knobs)
    assert [fact for fact in origin(asked) if "N=1" in fact]
    assert asked.row["fixed_dims"] == "N:1"
    assert [entry.row["fixed_dims"] for entry in entries].count(None) == 1
