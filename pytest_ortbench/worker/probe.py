"""Does a provider really run here? Two tiny models say so; a provider list does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.provider_kinds import CPU, WEBGPU
from pytest_ortbench.schema.runtime_questions import Probed, ProbeProvider
from pytest_ortbench.worker.plugins import ProviderMissing
from pytest_ortbench.worker.profiling import profile
from pytest_ortbench.worker.session import OptionIgnored, create, session_options
from pytest_ortbench.worker.state import WorkerState
from pytest_ortbench.worker.tiny import (
    MATRIX_PRODUCT,
    QUANTISED_MODELS,
    TINY_MODELS,
    TinyModel,
    tiny_feeds,
)

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def probe_provider(question: ProbeProvider, state: WorkerState) -> Probed:
    """Run tiny models on a provider and say what executed them."""
    state.import_runtime()
    state.enter("session")
    return probe(question.provider)


def probe(provider: Provider) -> Probed:
    """Run the tiny models on a provider, the quantised ones if it takes none of the others.

    Returns:
        What executed each, and why those that did not run did not. One is enough: *seen*, ggml
        runs matrix products and refuses convolutions.

    Raises:
        Exception: what creating and running a session raises, if no model ran.
    """
    placements: dict[str, Placement] = {}
    errors: dict[str, Exception] = {}
    for models in (TINY_MODELS, QUANTISED_MODELS):
        for model in models:
            try:
                placements[model.name] = _placement(model, provider)
            except (ProviderMissing, OptionIgnored):
                # No other model will change that.
                raise
            except Exception as error:  # noqa: BLE001 - native errors have no common base class
                errors[model.name] = error
        if any(placement.executed.get(provider.name) for placement in placements.values()):
            break
    if not placements:
        raise next(iter(errors.values()))
    return Probed(
        placements=placements, refused={name: str(error) for name, error in errors.items()}
    )


def _placement(model: TinyModel, provider: Provider) -> Placement:
    placement, _ = profile(
        model.content, provider, SessionConfig(), tiny_feeds(model), threads=allowance().threads
    )
    return placement


#: Providers whose device context goes with their last session. *Seen* with WebGPU on SwiftShader:
#: 140 MB, which the case's own session would take again.
_CONTEXT_OF_SESSIONS = (WEBGPU,)
#: Sessions that keep the context of a device.
_kept: list[InferenceSession] = []


def initialise(provider: Provider, *, threads: int) -> int | None:
    """Load a provider's libraries and make its device context, through a tiny session.

    So the memory that they take is in the baseline of a case, and their time stands apart from that
    of session creation. Whether it works is the case's own session's business.

    Args:
        provider: The case's provider.
        threads: Intra-op threads.

    Returns:
        Nanoseconds; ``None`` for the CPU, and where it did not work.
    """
    if provider.name == CPU:
        return None
    started = time.perf_counter_ns()
    try:
        options = session_options(SessionConfig(), threads=threads)
        session, _ = create(MATRIX_PRODUCT.content, provider, options)
        session.run(None, tiny_feeds(MATRIX_PRODUCT))
        if provider.name in _CONTEXT_OF_SESSIONS:
            _kept.append(session)
    except Exception:  # noqa: BLE001 - native errors have no common base class
        return None
    return time.perf_counter_ns() - started
