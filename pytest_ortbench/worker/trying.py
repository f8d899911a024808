"""Sessions that are made to see what a provider takes; nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.errors import first_line
from pytest_ortbench.core.readiness import NodeTrials, SessionTrial, TriedNode
from pytest_ortbench.schema.model_questions import TryNodes, TrySession
from pytest_ortbench.worker.assignment import ENTRY, AssignedNode, read_assignment
from pytest_ortbench.worker.plugins import ProviderMissing
from pytest_ortbench.worker.runtime import allowed
from pytest_ortbench.worker.session import FellBack, create, session_options
from pytest_ortbench.worker.state import WorkerState

#: What ONNX Runtime puts in between two devices is no node of the model.
_COPIES = ("MemcpyFromHost", "MemcpyToHost")


def try_session(question: TrySession, state: WorkerState) -> SessionTrial:
    """Make a session of a case, and say where its nodes went.

    Raises:
        Exception: what ONNX Runtime raises.
    """
    state.import_runtime()
    state.enter("session")
    case = question.case
    return _trial(case.variant.path, case.provider, case.session, question.sizes)


def try_nodes(question: TryNodes, state: WorkerState) -> NodeTrials:
    """Make a session of each file, and say whether the provider took its node."""
    state.import_runtime()
    state.enter("session")
    config = SessionConfig(custom_ops=question.custom_ops)
    taken: dict[str, bool] = {}
    refused: dict[str, str] = {}
    for name in question.names:
        path = str(Path(question.folder) / name)
        try:
            trial = _trial(path, question.provider, config, {})
        except (ProviderMissing, FellBack):
            raise
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            refused[name] = first_line(error)
            continue
        if trial.nodes:
            taken[name] = not trial.besides([link.name for link in question.provider.links])
    return NodeTrials(taken=taken, refused=refused)


def _trial(
    path: str, provider: Provider, config: SessionConfig, sizes: Mapping[str, int]
) -> SessionTrial:
    fixed = replace(config, fixed_dims={**config.fixed_dims, **sizes})
    options = session_options(fixed, threads=allowed().threads)
    options.add_session_config_entry(*ENTRY)
    session, _ = create(path, provider, options)
    found = read_assignment(session)
    nodes = tuple(
        TriedNode(op=_operator(node), name=node.name, provider=node.provider)
        for node in found.nodes
        if node.op not in _COPIES
    )
    return SessionTrial(nodes=nodes, reason=found.reason)


def _operator(node: AssignedNode) -> str:
    return node.op if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op}"
