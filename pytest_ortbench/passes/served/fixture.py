"""What tests read of the service of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.passes.served.declaration import PASS

if TYPE_CHECKING:
    from pytest_ortbench.plugin.measured import Measured, View


def service(ortbench: Measured) -> View:
    """``p50``, ``p90``, ``p99``, ``overhead``, ``cpu`` (s) and ``memory`` of a service.

    It is the one that ``--ort-serve`` starts; requests to it are sent one after the other.
    """
    ortbench.need(PASS.name)
    names = [name.removeprefix(f"{PASS.name}_") for name in PASS.metric_names]
    return ortbench.view(PASS.name, *names)
