"""Placement of a session's nodes, proven by a profiled run of its own.

In which precision a compiled partition multiplies no profile shows; a product with the identity
does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, Provider, SessionConfig
from pytest_ortbench.core.compilation import WAYS
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.core.mantissa import FLOAT32_BITS
from pytest_ortbench.core.measurement import Placement
from pytest_ortbench.core.precision import computed_precision
from pytest_ortbench.core.session_entries import NO_COMPILE
from pytest_ortbench.worker.placement import read_profile
from pytest_ortbench.worker.products import bits_in, identity_product
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: The first run is left out of the times, so two more where they are cheap.
_RUNS = 3
_CHEAP_NS = 1_000_000_000


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

    Of a model that multiplies float32 in partitions of its provider, or of links of its chain, the
    fewest of which count. *Seen*: OpenVINO multiplies in bfloat16 on CPUs that have it, and says
    so nowhere.

    Args:
        placement: From the profile of the case.
        case: What was profiled.
        threads: Intra-op threads.
    """
    compiling = _compiling(placement, case.provider)
    if not compiling or computed_precision(case) != "fp32":
        return placement
    kept = [_product_bits(provider, case.session, threads) for provider in compiling]
    return replace(placement, product_bits=_fewest(kept))


def _compiling(placement: Placement, provider: Provider) -> list[Provider]:
    """The provider, or the links of its chain, that ran partitions."""
    if not placement.links:
        return [provider] if placement.partitions else []
    links = zip(provider.links, placement.links, strict=True)
    return [link for link, ran in links if ran.partitions]


def _fewest(kept: Sequence[int | None]) -> int | None:
    """The fewest bits; where all that are known are whole, none are unless all are known."""
    known = [bits for bits in kept if bits is not None]
    if not known or (min(known) >= FLOAT32_BITS and len(known) < len(kept)):
        return None
    return min(known)


def _product_bits(provider: Provider, config: SessionConfig, threads: int) -> int | None:
    """Multiply with the identity in a session of the same options; ``None`` where it can't be."""
    entries = {
        key: value for key, value in config.entries.items() if key not in (NO_COMPILE, WAYS[1])
    }
    model, feeds = identity_product()
    try:
        placement, session = profile(
            model, provider, SessionConfig(entries=entries), feeds, threads=threads
        )
        if placement.executed.keys() != {provider.name}:
            return None
        (product,) = session.run(None, feeds)
    except Exception:  # noqa: BLE001 - native errors have no common base class
        # A provider that refuses this product says nothing of the case: the bits are unknown.
        return None
    return bits_in(product)
