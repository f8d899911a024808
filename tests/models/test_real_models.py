"""The models of the shipped catalogue, fetched and run at the sizes that it names."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ortbench.core.model import Model
from pytest_ortbench.models.catalogue import shipped_catalogue
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.sizes import RefusedCombination
from tests.models.graphs import run

pytestmark = pytest.mark.live

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "silero-vad": {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
    "rapidocr-det": {"x": (1, 3, 736, 736)},
    "rapidocr-rec": {"x": (1, 3, 48, 320)},
    "rapidocr-cls": {"x": (1, 3, 48, 192)},
    "magika": {"bytes": (1, 2048)},
    "nudenet-320n": {"images": (1, 3, 320, 320)},
    "ddddocr-det": {"images": (1, 3, 416, 416)},
    "ddddocr-rec": {"input1": (1, 1, 64, 160)},
}
FIXED_BATCH = ("ddddocr-det", "ddddocr-rec")


def test_every_entry_is_here() -> None:
    assert set(SHAPES) == set(shipped_catalogue())


@pytest.mark.needs("network")
@pytest.mark.parametrize("name", SHAPES)
def test_runs_at_its_own_sizes(name: str, request: pytest.FixtureRequest) -> None:
    (found,) = resolve_models([f"zoo:{name}"], root=request.config.rootpath)
    assert isinstance(found, Model), getattr(found, "error", "")
    assert found.source == f"zoo:{name}"
    assert found.size_bytes == shipped_catalogue()[name].size_bytes
    feeds, outputs = run(found)
    assert {key: array.shape for key, array in feeds.items()} == SHAPES[name]
    for output in outputs:
        assert np.isfinite(output).all()
        assert output.size == 1 or np.unique(output).size > 1
    if name in FIXED_BATCH:
        with pytest.raises(RefusedCombination, match="fixed to 1"):
            resolve_inputs(found, batch=4, dims={})
    else:
        specs = resolve_inputs(found, batch=4, dims={})
        assert any(4 in spec.shape for spec in specs)
