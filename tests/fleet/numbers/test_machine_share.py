"""What of a difference between two runs is the machine's."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.core.run import Machine
from pytest_ortbench.core.yardstick import Yardstick
from pytest_ortbench.fleet.numbers.facts import RunFacts, reduce_run
from pytest_ortbench.fleet.numbers.machine_share import MachineShare, machine_shares
from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.markdown import render_comparison_markdown
from pytest_ortbench.fleet.report.table import render_comparison_table
from pytest_ortbench.fleet.report.view import build_view
from tests.report.page_reader import read_page
from tests.results_factory import make_result, make_run, make_turns, make_yardstick


def run_on(
    host: str,
    *,
    machine: float = 1.0,
    model: float = 1.0,
    yardstick: Yardstick | None = None,
    cpus: float = 1.0,
    flags: tuple[Flag, ...] = (),
) -> RunFacts:
    """A run on a machine that is slower for all work, of a model that is slower besides."""
    turns = [
        make_turns(
            round(3_000_000 * machine * model),
            unit_ns=round(500_000 * machine),
            seed=seed,
            yardstick=yardstick,
            cpus=cpus,
        )
        for seed in range(3)
    ]
    median_ns = round(3_100_000 * machine * model)
    result = make_result(turns=turns, median_ns=median_ns, flags=flags)
    run = make_run([result], machine=Machine(host=host, stable={"cpu": host}))
    return reduce_run(dataclasses.replace(run, run_id=f"20260102T030405Z-{host}-0001"))


def shares(*runs: RunFacts) -> list[MachineShare]:
    return machine_shares(build_view(runs, axis="machine").main)


def test_a_slower_machine_is_told_from_a_slower_model() -> None:
    (machine,) = shares(run_on("a"), run_on("b", machine=1.5))
    (model,) = shares(run_on("a"), run_on("b", model=1.5))
    (both,) = shares(run_on("a"), run_on("b", machine=2.0, model=1.5))
    for share, seen, of_machine, left in (
        (machine, 1.5, 1.5, 1.0),
        (model, 1.5, 1.0, 1.5),
        (both, 3.0, 2.0, 1.5),
    ):
        assert share.seen.value == pytest.approx(seen, rel=0.02)
        assert share.machine == pytest.approx(of_machine, rel=0.02)
        assert share.left.value == pytest.approx(left, rel=0.02)
        assert share.machine * share.left.value == pytest.approx(share.seen.value)
        assert share.left.low is not None
        assert share.left.high is not None
        assert share.left.low <= share.left.value <= share.left.high


@pytest.mark.parametrize(
    "other",
    [
        run_on("b", yardstick=make_yardstick(version="0.3.29")),
        run_on("b", cpus=0.7),
        run_on("b", flags=(Flag(name="CPU-SHARE"),)),
    ],
    ids=["another library", "fewer CPUs", "lacked CPUs"],
)
def test_what_does_not_compare_has_no_share(other: RunFacts) -> None:
    assert shares(run_on("a"), other) == []
    assert build_view([run_on("a"), other], axis="machine").by_yardstick is None


def test_other_kernels_are_another_machine_and_are_told() -> None:
    other = make_yardstick(kernels="Zen")
    (share,) = shares(run_on("a"), run_on("b", yardstick=other))
    assert share.kernels == (make_yardstick().kernels, "Zen")
    insert = build_view([run_on("a"), run_on("b", yardstick=other)], axis="machine").by_yardstick
    assert insert is not None
    assert any("Zen" in sentence for sentence in insert.sentences)


def test_every_rendering_has_it_and_other_metrics_do_not() -> None:
    runs = [run_on("a"), run_on("b", machine=1.5)]
    view = build_view(runs, axis="machine")
    assert view.by_yardstick is not None
    (row,) = view.by_yardstick.rows
    for text in (
        render_comparison_table(view, width=200, color=False),
        render_comparison_markdown(view),
        read_page(render_comparison_html(view)).text,
    ):
        # The page parts a ratio from its interval.
        assert all(cell.partition(" [")[0] in text for cell in row)
    for metric in ("throughput", "latency_relative"):
        assert build_view(runs, axis="machine", metric=metric).by_yardstick is None
