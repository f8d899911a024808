"""Copies between host and device: in turns in one session, as a paired ratio."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.analysis.paired_ratio import PairedRatio, ratio_in_turns
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure, WarmUp
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.passes import carry_out
from pytest_ortbench.execution.rounds import FEWEST_ROUNDS
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.transfers.facts import TransferLaunch, Transfers
from pytest_ortbench.passes.transfers.questions import TimeTransfers, TransferBlock
from pytest_ortbench.passes.transfers.report import transfer_tables
from pytest_ortbench.passes.transfers.run import measure_transfers
from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.schema.case_questions import WarmUpFor
from pytest_ortbench.schema.meaning import faults_of
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.launch.cases import case_of, relu
from tests.results_factory import make_case, make_result, make_run

MS = 1_000_000
CASE = replace(
    make_case(),
    io="device",
    concurrency=4,
    sampling=Sampling(time_s=0.001, workers=3),
)


class Moving(FakeLauncher):
    """An inference takes 6 ms from the host and 4 ms on the device, in a slower hour twice that."""

    def __init__(self, refusal: Failure | None = None) -> None:
        super().__init__(lambda case, index: 1e6)
        self.asked: list[TimeTransfers] = []
        self.refusal = refusal

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        return opened.answering(
            {
                WarmUpFor: lambda _: WarmUp(
                    durations_ns=(5 * MS,), count=1, total_ns=5 * MS, steady=True, rule="fake"
                ),
                TimeTransfers: self._block,
            }
        )

    def _block(self, question: TimeTransfers) -> TransferBlock:
        self.asked.append(question)
        if self.refusal is not None and question.io == "device":
            raise WorkerError(self.refusal)
        on_device = question.io == "device"
        each = (4 if on_device else 6) * MS * (2 if len(self.opened) > 1 else 1)
        return TransferBlock(
            durations_ns=(each,) * question.iterations, device="cuda:0" if on_device else ""
        )


def test_rounds_of_one_session_from_the_host_and_on_the_device() -> None:
    launcher = Moving()
    found = measure_transfers(make_result(case=CASE), Means(launcher=launcher))
    assert (found.device, len(found.launches), found.reason) == ("cuda:0", 3, "")
    assert all(len(launch.host_ns) >= FEWEST_ROUNDS for launch in found.launches)
    # Whatever the row is of: one caller, and values on the host where nothing else is said.
    assert {(worker.case.io, worker.case.callers) for worker in launcher.opened} == {
        ("end-to-end", 1)
    }
    assert all(worker.closed for worker in launcher.opened)
    cost = ratio_in_turns(found)
    assert isinstance(cost, PairedRatio)
    assert cost.value == pytest.approx(1.5)
    assert {question.iterations for question in launcher.asked} == {1, 4}


@pytest.mark.parametrize(
    "case",
    [
        replace(CASE, provider=parse_provider("torch")),
        replace(CASE, provider=replace(parse_provider("cuda"), options={"enable_cuda_graph": "1"})),
    ],
)
def test_where_nothing_is_copied_no_process_is_started(case: Case) -> None:
    launcher = Moving()
    found = measure_transfers(make_result(case=case), Means(launcher=launcher))
    assert found.reason
    assert launcher.opened == []


def test_values_that_can_not_be_bound_are_a_reason_and_cost_nothing_else() -> None:
    failure = Failure(kind="unsupported", phase="first", message="text")
    result = carry_out("transfers", make_result(case=CASE), Means(launcher=Moving(failure)))
    assert result.transfers == Transfers(reason="unsupported: text")
    assert result.status == "measured"
    assert "transfer_ratio" in summarise(result).missing


def result_of(transfers: Transfers | None) -> CaseResult:
    return replace(make_result(), transfers=transfers)


SOUND = TransferLaunch(host_ns=(6 * MS,) * 9, device_ns=(4 * MS,) * 9)


def test_the_ratio_is_a_metric_and_a_table() -> None:
    result = result_of(Transfers(device="cuda:0", launches=(SOUND,) * 3))
    found = summarise(result).quantities["transfer_ratio"]
    assert (found.value, found.low, found.high, found.samples) == (1.5, 1.5, 1.5, 27)
    [table] = transfer_tables(shown_run(make_run([result])))
    [row] = table.rows
    assert len(row) == len(table.headings)
    assert (row[0], row[1], row[2], row[-1]) == ("cuda:0", "6.00 ms", "4.00 ms", "27")
    [without] = transfer_tables(shown_run(make_run([result_of(Transfers(reason="no"))])))
    assert (without.rows, without.remarks) == ((), ("no",))
    assert transfer_tables(shown_run(make_run([result_of(None)]))) == ()


@pytest.mark.parametrize(
    ("transfers", "place"),
    [
        (Transfers(), "launches"),
        (Transfers(launches=(replace(SOUND, device_ns=(4,)),)), "device_ns"),
        (Transfers(launches=(replace(SOUND, host_ns=(0,) * 9),)), "host_ns"),
        (Transfers(launches=(TransferLaunch(host_ns=(), device_ns=()),)), "host_ns"),
    ],
)
def test_what_no_reader_could_believe_is_a_fault(transfers: Transfers, place: str) -> None:
    assert list(faults_of(result_of(Transfers(launches=(SOUND,))))) == []
    assert any(place in fault.path for fault in faults_of(result_of(transfers)))


@pytest.mark.live
def test_a_real_session_runs_both_ways(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    case = replace(case, sampling=replace(case.sampling, time_s=0.1, workers=1))
    with closing(ProcessLauncher()) as launcher:
        found = measure_transfers(make_result(case=case), Means(launcher=launcher))
    assert (found.device, found.reason) == ("cpu:0", "")
    assert isinstance(ratio_in_turns(found), PairedRatio)
