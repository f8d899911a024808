"""What tests read of the requests of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.passes.generation.declaration import PASS

if TYPE_CHECKING:
    from pytest_ortbench.plugin.measured import Measured, View


def generation(ortbench: Measured) -> View:
    """``ttft``, ``tpot``, ``itl_p50`` to ``itl_p99``, ``decode_rate``, ``prefill_rate``, ….

    Of a case whose timed unit is a request to a language model: times in seconds, rates in tokens
    a second.
    """
    return ortbench.with_passes(PASS.view)
