"""Whether the work of a model depends on the values that were drawn: sizes and durations by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.accuracy import compare, write_reference
from tests.results_factory import make_accuracy, make_case, make_result


@dataclass
class _Session:
    """Gives the positive values of its input, or all of them."""

    chooses: bool
    calls: int = 0
    outputs: list[SimpleNamespace] = field(
        default_factory=lambda: [SimpleNamespace(name="y", type="tensor(float)")]
    )

    def get_inputs(self) -> Sequence[SimpleNamespace]:
        return [SimpleNamespace(name="x", type="tensor(float)")]

    def get_outputs(self) -> Sequence[SimpleNamespace]:
        return self.outputs

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def run(self, _names: object, feeds: Mapping[str, object], /) -> Sequence[object]:
        self.calls += 1
        values = np.asarray(feeds["x"])
        return [values[values > 0] if self.chooses else values]


def _sizes(tmp_path: Path, *, chooses: bool) -> tuple[int, ...]:
    session = _Session(chooses)
    spec = InputSpec(name="x", type="tensor(float)", shape=(1, 64), hint=ValueHint(kind="normal"))
    write_reference(tmp_path / "reference.npz", session=session, specs=[spec], seed=0)
    return compare(session, tmp_path / "reference.npz").set_elements


def test_sizes_of_outputs_are_kept_for_each_set(tmp_path: Path) -> None:
    assert _sizes(tmp_path, chooses=False) == (64,) * 8
    found = _sizes(tmp_path, chooses=True)
    assert len(found) == 8
    assert min(found) < max(found) < 64


def _flagged(sizes: tuple[int, ...], durations_us: tuple[int, ...], *, path: str = "") -> str:
    accuracy = replace(
        make_accuracy(),
        set_elements=sizes,
        set_durations_ns=tuple(1000 * duration for duration in durations_us),
    )
    case = make_case()
    case = replace(case, inputs=tuple(replace(spec, path=path) for spec in case.inputs))
    result = replace(make_result(case=case), accuracy=accuracy)
    found = {flag.name: flag.detail for flag in flags_of(result)}
    return found.get("INPUT-DEPENDENT", "")


@pytest.mark.parametrize(
    ("sizes", "durations_us", "flagged"),
    [
        ((10, 10), (500, 510), False),
        ((10, 12), (500, 510), True),
        ((10, 10), (500, 900), True),
        ((10, 10), (10, 90), False),
        ((10,), (500,), False),
        ((), (), False),
    ],
)
def test_sizes_or_durations_that_differ_are_flagged(
    sizes: tuple[int, ...], durations_us: tuple[int, ...], *, flagged: bool
) -> None:
    assert bool(_flagged(sizes, durations_us)) == flagged
    assert _flagged(sizes, durations_us, path="x.npz") == ""


def test_the_spread_is_said() -> None:
    detail = _flagged((10, 4000), (500, 900))
    for part in ("10 to 4,000 values", "500 µs to 900 µs", "2 drawn input sets"):
        assert part in detail
