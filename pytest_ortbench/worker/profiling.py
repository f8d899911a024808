"""Placement of a session's nodes, proven by a profiled run of its own.

In which precision a compiled partition multiplies no profile shows; a product with the identity
does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.compilation import WAYS
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.core.mantissa import kept_bits, mantissa_steps
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.precision import computed_precision
from pytest_ortbench.core.session_entries import NO_COMPILE
from pytest_ortbench.worker.model_writer import Node, Value, write_model
from pytest_ortbench.worker.placement import read_profile
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

#: The first run is left out of the times, so two more where they are cheap.
_RUNS = 3
_CHEAP_NS = 1_000_000_000

#: Rows and width of the product: multiples of what kernels for matrices take at once.
_ROWS, _WIDTH = 64, 128
_OPSET = 13


def profile(
    model: str | bytes,
    provider: Provider,
    config: SessionConfig,
    feeds: Mapping[str, object],
    *,
    threads: int,
) -> tuple[Placement, InferenceSession]:
    """Run a model with the profiler on, and read from its events what ran where.

    No graph is recorded, since a replay has no nodes. The profile's files are removed; the session,
    whose profiling is over, can go on computing.

    Args:
        model: Path of the file, or its bytes.
        provider: Where it should run.
        config: Session options.
        feeds: Values of the inputs.
        threads: Intra-op threads.

    Returns:
        The placement, and the session.

    Raises:
        Exception: what :func:`~pytest_ortbench.worker.session.create` and ONNX Runtime raise.
    """
    # Long after the start, to which it would add.
    from pytest_ortbench.core.own_folder import OwnFolder

    # A session that failed has its trace open still, which Windows does not remove.
    with OwnFolder("profile") as folder:
        options = session_options(config, threads=threads, profile_prefix=folder / "p")
        session, _ = create(model, without_capture(provider), options)
        started = time.perf_counter_ns()
        for _ in range(_RUNS):
            session.run(None, feeds)
            if time.perf_counter_ns() - started > _CHEAP_NS:
                break
        file = Path(session.end_profiling())
        placement = read_profile(
            file,
            provider.name,
            links=provider.links if provider.then else (),
            model=model,
            session=session,
        )
    return placement, session


def with_product_bits(placement: Placement, case: Case, *, threads: int) -> Placement:
    """Return the placement with the bits that products keep, where its profile can't tell.

    Of a model that multiplies float32 in partitions of one provider. *Seen*: OpenVINO multiplies
    in bfloat16 on CPUs that have it, and says so nowhere.

    Args:
        placement: From the profile of the case.
        case: What was profiled.
        threads: Intra-op threads.
    """
    if not placement.partitions or placement.links or computed_precision(case) != "fp32":
        return placement
    return replace(placement, product_bits=_product_bits(case.provider, case.session, threads))


def _product_bits(provider: Provider, config: SessionConfig, threads: int) -> int | None:
    """Multiply with the identity in a session of the same options; ``None`` where it can't be."""
    entries = {
        key: value for key, value in config.entries.items() if key not in (NO_COMPILE, WAYS[1])
    }
    steps = _steps()
    try:
        placement, session = profile(
            _model(), provider, SessionConfig(entries=entries), {"x": steps}, threads=threads
        )
        if placement.executed.keys() != {provider.name}:
            return None
        (product,) = session.run(None, {"x": steps})
    except Exception:  # noqa: BLE001 - native errors have no common base class
        # A provider that refuses this product says nothing of the case: the bits are unknown.
        return None
    return kept_bits([float(value) for value in product[:, 0]])


def _steps() -> NDArray[np.float32]:
    import numpy as np  # comes with ONNX Runtime

    column = np.array(mantissa_steps(_ROWS), dtype=np.float32)
    return np.repeat(column[:, None], _WIDTH, axis=1)


def _model() -> bytes:
    import numpy as np

    return write_model(
        [Node(op="MatMul", inputs=("x", "identity"), output="y")],
        [Value(name="x", element="float", shape=(_ROWS, _WIDTH))],
        [Value(name="y", element="float", shape=(_ROWS, _WIDTH))],
        {"identity": ("float", np.eye(_WIDTH, dtype=np.float32))},
        opset=_OPSET,
    )
