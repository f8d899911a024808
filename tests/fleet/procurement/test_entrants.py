"""A purchase needs a rival: machines that are missing, misspelt, named twice, or never measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.procurement.award import Sureness, award_of
from pytest_ortbench.fleet.procurement.entrants import Absence, called_as_priced, machines_of
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.ranking import Tender, tenders
from pytest_ortbench.fleet.procurement.sentences import cheapest_machines
from pytest_ortbench.fleet.report.procurement import procure
from tests.fleet.numbers.runs import case, exact, run


def priced(*names: str) -> Terms:
    machines = tuple(PricedMachine(name=name, host=name, price=1000) for name in names)
    return Terms(currency="EUR", machines=machines, rate_per_s=10, limit_s=1.0)


def model(name: str = "net", seconds: float = 0.01, **facts: str) -> CaseFacts:
    spans = {
        "latency_p50": exact(seconds),
        "latency_mean": exact(seconds),
        "throughput": exact(1 / seconds),
    }
    made = case(spans if not facts.get("reason") else {}, model=name, service_s=[seconds] * 20)
    return replace(made, **facts)


BIG = run("big", model())


def absences(tender: Tender) -> dict[str, Absence]:
    return {entry.machine: entry.absence for entry in tender.left_out}


@pytest.mark.parametrize(
    ("other", "names", "expected"),
    [
        (run("vm", model()), ("big",), {"vm": Absence.NO_PRICE}),
        (run("big", model(), day=2), ("big", "small"), {"small": Absence.NO_RUN}),
        (run("small", model("other")), ("big", "small"), {"small": Absence.NOT_MEASURED}),
        (
            run("small", model(reason="INACCURATE")),
            ("big", "small"),
            {"small": Absence.NOT_RANKED},
        ),
        (
            run("small", replace(model(), one_worker=True)),
            ("big", "small"),
            {"small": Absence.ONE_WORKER},
        ),
        (run("small", model(digest="e")), ("big", "small"), {"small": Absence.OTHER_MODEL}),
        (run("small", model(inputs="x:[9]")), ("big", "small"), {"small": Absence.OTHER_INPUTS}),
        (
            run("small", replace(model(), quantities={})),
            ("big", "small"),
            {"small": Absence.NO_THROUGHPUT},
        ),
        (
            run("small", model(seconds=2.0)),
            ("big", "small"),
            {"small": Absence.NO_FIGURE},
        ),
    ],
)
def test_without_a_rival_nothing_is_recommended(
    other: RunFacts, names: tuple[str, ...], expected: dict[str, Absence]
) -> None:
    runs, terms = [BIG, other], priced(*names)
    tender = next(made for made in tenders(runs, terms) if made.model == "net")
    award = award_of(tender)
    assert (award.kind, award.best) == (Sureness.ALONE, None)
    assert absences(tender) == expected
    told = cheapest_machines([tender], terms)[0]
    assert told.lead
    assert not told.winner
    assert all(name in told for name in ("big", *expected))


def test_the_title_says_that_only_one_was_priced() -> None:
    alone = procure(
        [BIG, run("small", model("other", reason="INACCURATE"))], priced("big", "small")
    )
    assert alone.priced == ("big",)
    assert alone.title.startswith("Only big")
    both = procure([BIG, run("small", model())], priced("big", "small"))
    assert (both.priced, both.title) == (("big", "small"), "What 2 machines cost")


def test_a_model_that_nobody_can_serve_is_told() -> None:
    runs = [BIG, run("small", model(), model("bad", reason="INACCURATE"))]
    made = {tender.model: tender for tender in tenders(runs, priced("big", "small"))}
    assert award_of(made["bad"]).kind is Sureness.NONE
    assert absences(made["bad"]) == {"big": Absence.NOT_MEASURED, "small": Absence.NOT_RANKED}


@pytest.mark.parametrize(
    ("entry", "host"), [("smal", "small"), ("Small", "small"), ("rakc-1", "rack-1")]
)
def test_a_misspelt_entry_is_an_error(entry: str, host: str) -> None:
    with pytest.raises(UsageError) as caught:
        tenders([BIG, run(host, model())], priced("big", entry))
    assert f"machines.{entry}" in caught.value.message
    assert f"[machines.{host}]" in caught.value.hint


def test_a_misspelt_host_is_mended_below_its_entry() -> None:
    terms = priced("big", "attic")
    big, attic = terms.machines
    with pytest.raises(UsageError) as caught:
        machines_of(
            [BIG, run("vm.lan", model())],
            replace(terms, machines=(big, replace(attic, host="vn.lan"))),
        )
    assert 'host = "vm.lan" below [machines.attic]' in caught.value.hint
    assert '[machines."vm.lan"]' in caught.value.hint  # a bare key would be two tables


def test_siblings_with_numbers_are_not_misspelt() -> None:
    (tender,) = tenders([BIG, run("lab-3", model())], priced("big", "lab-2"))
    assert absences(tender) == {"lab-2": Absence.NO_RUN, "lab-3": Absence.NO_PRICE}


def test_two_machines_under_one_name_are_an_error() -> None:
    runs = [BIG, replace(run("big", model(), day=2), machine={"cpu": "another"})]
    with pytest.raises(UsageError) as caught:
        tenders(runs, priced("big"))
    assert "cpu" in caught.value.message
    # Who gives both their entries knows of them.
    (tender,) = tenders(runs, priced("big", "big (2)"))
    assert [offer.economics.machine.name for offer in tender.offers] == ["big", "big (2)"]


def test_a_machine_has_the_name_of_its_entry_everywhere() -> None:
    terms = priced("big", "small")
    big, small = terms.machines
    hosts = replace(terms, machines=(replace(big, host="vm-1"), replace(small, host="vm-2")))
    # One is called as its host, the other as its entry.
    runs, named = called_as_priced([run("vm-2", model()), run("big", model())], hosts)
    assert [one.host for one in runs] == ["small", "big"]
    assert [machine.host for machine in named.machines] == ["big", "small"]


def test_two_runs_of_one_machine_are_one_machine() -> None:
    (tender,) = tenders([BIG, run("big", model(), day=2)], priced("big"))
    assert [offer.economics.machine.name for offer in tender.offers] == ["big"]


def test_runs_of_no_machine_of_the_table_are_told_how_to_name_them() -> None:
    with pytest.raises(UsageError) as caught:
        tenders([run("vm", model())], priced("big", "small"))
    assert all(name in caught.value.message for name in ("vm", "big", "small"))
    assert 'host = "vm"' in caught.value.hint
    assert "[machines.big]" in caught.value.hint
    assert "[machines.vm]" in caught.value.hint
