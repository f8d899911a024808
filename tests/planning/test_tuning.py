"""Whether providers search before they compute: an axis of those that do."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.option_tables import SWITCH, TABLES, WHOLE
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.tuning import PLACE, SEARCHES, tuned
from tests.planning.test_matrix import make_model


def target(*aliases: str) -> Target:
    return Target(runtime=Runtime(), providers=tuple(map(parse_provider, aliases)))


def test_a_provider_that_searches_has_a_case_in_each_position_and_others_one() -> None:
    request = PlanRequest(models=(), tuning=("on", "off"))
    plan = build_plan(request, [make_model()], [target("cpu", "cuda")])
    found = {entry.case.case_id: entry.case.provider.options for entry in plan.entries}
    assert found == {
        "m/native/cpu/b1": {},
        "m/native/cuda/b1/tuning:on": {
            "cudnn_conv_algo_search": "EXHAUSTIVE",
            "tunable_op_enable": "1",
            "tunable_op_tuning_enable": "1",
        },
        "m/native/cuda/b1/tuning:off": {
            "cudnn_conv_algo_search": "HEURISTIC",
            "tunable_op_enable": "0",
            "tunable_op_tuning_enable": "0",
        },
    }


@pytest.mark.parametrize(
    ("alias", "option", "off", "on"),
    [
        ("tensorrt", "trt_builder_optimization_level", "0", "5"),
        ("qnn:htp", "htp_graph_finalization_optimization_mode", "1", "3"),
    ],
)
def test_what_searches_while_it_compiles_has_both_rows(
    alias: str, option: str, off: str, on: str
) -> None:
    request = PlanRequest(models=(), tuning=("off", "on"))
    entries = build_plan(request, [make_model()], [target(alias)]).entries
    found = [(entry.case.knobs["tuning"], entry.case.provider.options[option]) for entry in entries]
    assert found == [("off", off), ("on", on)]


def test_without_the_axis_providers_do_as_they_do() -> None:
    [entry] = build_plan(PlanRequest(models=()), [make_model()], [target("cuda")]).entries
    assert (entry.case.knobs, entry.case.provider.options) == ({}, {})


@pytest.mark.parametrize("alias", SEARCHES)
def test_every_option_is_one_that_the_provider_documents(alias: str) -> None:
    for key, pair in SEARCHES[alias].items():
        rule = TABLES[alias][key]
        if rule == WHOLE:
            assert all(value.isdecimal() for value in pair)
        else:
            assert set(pair) <= ({"0", "1"} if rule == SWITCH else set(rule))
        assert len(set(pair)) == 2


def test_an_option_that_the_user_set_is_not_set_again() -> None:
    request = PlanRequest(
        models=(),
        tuning=("on",),
        provider_options={"cuda": {"cudnn_conv_algo_search": "DEFAULT", "tunable_op_enable": "1"}},
    )
    with pytest.raises(UsageError) as raised:
        build_plan(request, [make_model()], [target("cuda")])
    assert raised.value.place == PLACE
    for given in ("cudnn_conv_algo_search=DEFAULT", "tunable_op_enable=1"):
        assert f"cuda.{given}" in raised.value.hint


def test_where_nothing_searches_the_axis_is_refused() -> None:
    request = PlanRequest(models=(), tuning=("on", "off"))
    with pytest.raises(UsageError) as raised:
        build_plan(request, [make_model()], [target("cpu", "openvino")])
    assert raised.value.place == PLACE


def test_other_options_stay() -> None:
    [(provider, knobs)] = tuned(parse_provider("cuda:1"), ("off",))
    assert provider.options["device_id"] == "1"
    assert knobs == {"tuning": "off"}
