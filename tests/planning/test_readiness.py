"""What is concluded from trials; a launcher stands in for a provider that leaves nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.provider_kinds import WEBGPU
from pytest_ortbench.core.readiness import NodeTrials, NotTaken, SessionTrial, TriedNode
from pytest_ortbench.models.lone_nodes import LoneNode
from pytest_ortbench.planning.matrix import Planned, Target, build_plan
from pytest_ortbench.planning.readiness import cause_of, readiness
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.schema.case_questions import ProfilePlacement
from pytest_ortbench.schema.model_questions import TrySession
from tests.planning.test_matrix import make_model

QNN = Provider(alias="qnn", name="QNNExecutionProvider")
CPU = "CPUExecutionProvider"
#: Nothing can be tried alone there.
FAR = Runtime(label="far", shares_files=False)


def nodes(provider: str, *names: str, op: str = "Conv") -> tuple[TriedNode, ...]:
    return tuple(TriedNode(op=op, name=name, provider=provider) for name in names)


def case_on(provider: Provider = QNN) -> Planned:
    target = Target(runtime=FAR, providers=(provider,))
    [entry] = build_plan(PlanRequest(models=(), batch_sizes=(2,)), [make_model()], [target]).entries
    return entry


@dataclass
class TryingLauncher:
    """Gives the nodes of a session by whether sizes are fixed."""

    of: Callable[[dict[str, int]], SessionTrial]
    asked: list[dict[str, int]] = field(default_factory=list)

    def ask(self, question: TrySession, *, deadline: float) -> SessionTrial:
        assert deadline > 0
        self.asked.append(question.sizes)
        return self.of(question.sizes)


def found(of: Callable[[dict[str, int]], SessionTrial], planned: Planned | None = None) -> Any:
    launcher: Any = TryingLauncher(of)
    return readiness(planned or case_on(), launcher)


def test_a_provider_that_takes_every_node_is_ready() -> None:
    trial = SessionTrial(nodes=nodes(QNN.name, "a", "b"))
    ready = found(lambda _: trial)
    assert (ready.state, ready.taken, ready.total) == ("all", 2, 2)
    assert ready.not_taken == ()
    assert ready.told_by == "assignment"


def test_nodes_that_fixed_sizes_mend_are_told_apart() -> None:
    def trial(sizes: dict[str, int]) -> SessionTrial:
        mended = QNN.name if sizes else CPU
        return SessionTrial(
            nodes=(*nodes(QNN.name, "a"), *nodes(mended, "b"), *nodes(CPU, "c", "d"))
        )

    ready = found(trial)
    assert (ready.state, ready.taken, ready.total) == ("some", 1, 4)
    assert ready.not_taken == (
        NotTaken(op="Conv", nodes=2, names=("c", "d"), elsewhere=CPU),
        NotTaken(op="Conv", nodes=1, names=("b",), elsewhere=CPU, cause="sizes", detail="N=2"),
    )


def test_a_chain_takes_what_any_of_its_links_takes() -> None:
    chain = Provider.chain([QNN, Provider(alias="cuda", name="CUDAExecutionProvider")])
    trial = SessionTrial(
        nodes=(*nodes(QNN.name, "a", "b"), *nodes("CUDAExecutionProvider", "c"), *nodes(CPU, "d"))
    )
    ready = found(lambda _: trial, case_on(chain))
    assert (ready.state, ready.taken, ready.total) == ("some", 3, 4)
    assert ready.by_link == {"qnn": 2, "cuda": 1}
    assert ready.not_taken == (NotTaken(op="Conv", nodes=1, names=("d",), elsewhere=CPU),)


def test_a_chain_that_ends_at_the_cpu_leaves_nothing() -> None:
    chain = Provider.chain([QNN, Provider(alias="cpu", name=CPU)])
    trial = SessionTrial(nodes=(*nodes(QNN.name, "a"), *nodes(CPU, "b")))
    ready = found(lambda _: trial, case_on(chain))
    assert (ready.state, ready.taken, ready.by_link) == ("all", 2, {"qnn": 1, "cpu": 1})


def test_a_session_with_fixed_sizes_that_fails_has_mended_nothing() -> None:
    def trial(sizes: dict[str, int]) -> SessionTrial:
        if sizes:
            raise WorkerError(case_failure("died", kind="crash", phase="session"))
        return SessionTrial(nodes=(*nodes(QNN.name, "a"), *nodes(CPU, "b")))

    assert found(trial).not_taken == (NotTaken(op="Conv", nodes=1, names=("b",), elsewhere=CPU),)


def test_nodes_without_names_are_counted_by_operator() -> None:
    def trial(sizes: dict[str, int]) -> SessionTrial:
        left = 1 if sizes else 3
        return SessionTrial(nodes=(*nodes(QNN.name, "a"), *nodes(CPU, *[""] * left, op="Relu")))

    counts = {entry.cause: entry.nodes for entry in found(trial).not_taken}
    assert counts == {"sizes": 2, "": 1}


def test_a_session_that_is_refused_is_not_ready() -> None:
    def refuse(_: dict[str, int]) -> SessionTrial:
        raise WorkerError(case_failure("no operator", kind="error", phase="session"))

    ready = found(refuse)
    assert (ready.state, ready.reason) == ("refused", "no operator")


@pytest.mark.parametrize("kind", ["unavailable", "timeout", "out_of_memory"])
def test_what_the_machine_lacks_says_nothing_of_the_model(kind: str) -> None:
    def fail(_: dict[str, int]) -> SessionTrial:
        raise WorkerError(case_failure("no device", kind=kind, phase="session"))

    assert found(fail).state == "not tried"


def test_a_refusal_of_the_plan_and_an_engine_are_not_tried() -> None:
    def never(_: dict[str, int]) -> SessionTrial:
        raise AssertionError

    refused = replace(case_on(), refusal=case_failure("gone", kind="unavailable", phase="import"))
    assert found(never, refused).state == "not tried"
    engine = case_on(Provider(alias="tract", name="tract", role="engine"))
    tried = found(never, engine)
    assert tried.state == "not tried"
    assert tried.hint.endswith("--ort-providers=tract")


def lone(change: str, detail: str = "") -> LoneNode:
    return LoneNode(change=change, detail=detail, proto=None)  # type: ignore[arg-type]  # nobody looks


FILES = [
    ("0.onnx", lone("")),
    ("1.onnx", lone("types", "int64 → int32")),
    ("2.onnx", lone("opset", "opset 12")),
]


@pytest.mark.parametrize(
    ("taken", "cause"),
    [
        ({"0.onnx": True, "1.onnx": True}, ("neighbours", "")),
        ({"0.onnx": False, "1.onnx": True}, ("types", "int64 → int32")),
        ({"0.onnx": False, "2.onnx": True}, ("opset", "opset 12")),
        ({"0.onnx": False, "1.onnx": False}, ("operator", "")),
        # Without the node as it is, nothing can be compared with it.
        ({"1.onnx": True}, ("", "")),
        ({}, ("", "")),
    ],
)
def test_a_cause_is_what_mended_the_node(taken: dict[str, bool], cause: tuple[str, str]) -> None:
    assert cause_of(FILES, NodeTrials(taken=taken, refused={})) == cause


def test_a_node_that_can_not_stand_alone_has_no_known_cause() -> None:
    assert cause_of([], NodeTrials(taken={}, refused={})) == ("", "")


class Profiled:
    """A worker that has profiled its case."""

    closed = False

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def ask(self, question: ProfilePlacement) -> Placement:
        assert isinstance(question, ProfilePlacement)
        return self._placement

    def close(self) -> None:
        self.closed = True


@dataclass
class ProfilingLauncher(TryingLauncher):
    """Profiles one case as well."""

    worker: Profiled | None = None

    def open(self, case: Case, *, worker: int, deadline: float) -> Profiled:
        assert (case.provider.name, worker, deadline > 0) == (WEBGPU, 0, True)
        assert self.worker is not None
        return self.worker


def test_of_webgpu_a_run_counts_since_not_all_nodes_are_named() -> None:
    worker = Profiled(
        Placement(provider=WEBGPU, executed={WEBGPU: 4, CPU: 1}, ops_elsewhere={"Cos": 1})
    )
    named = SessionTrial(nodes=nodes(WEBGPU, "t", "u", op="Transpose"))
    launcher: Any = ProfilingLauncher(lambda _: named, worker=worker)
    ready = readiness(case_on(Provider(alias="webgpu", name=WEBGPU)), launcher)
    assert (ready.told_by, ready.state, ready.taken, ready.total) == ("profile", "some", 4, 5)
    assert worker.closed
