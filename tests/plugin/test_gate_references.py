"""Reference outputs of a gate lie on the disk until no pair that is still to come needs them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.launch.reference import reference_case, reference_file
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.sides import PlannedPair
from pytest_ortbench.plugin.other_side import OtherSide
from tests.results_factory import make_case


def _gate(folder: Path) -> Any:
    """Writes a file where the reference outputs of each side belong, in place of launches."""

    def judge(pair: Pair, *_: object, **__: object) -> GateResult:
        for case in (pair.baseline, pair.contender):
            reference_file(reference_case(case), folder).write_bytes(b"outputs")
        return GateResult(case_id="c", runtime="r", baseline="b", verdict="same")

    return SimpleNamespace(judge=judge)


def _side(folder: Path, pairs: list[PlannedPair]) -> OtherSide:
    engine = SimpleNamespace(
        prepare_pair=lambda baseline, contender: (baseline.case, contender.case),
        known=lambda _: None,
    )
    progress = SimpleNamespace(within=lambda _: nullcontext())
    options = SimpleNamespace(against="model:old.onnx")
    bench: Any = SimpleNamespace(
        options=options,
        execution=engine,
        progress=progress,
        budget=None,
        known=lambda _: None,
    )
    side = OtherSide(bench)
    side._pairs = {pair.contender.case.key: pair for pair in pairs}
    side.carried = list(side._pairs)
    side.__dict__.update(_gate=_gate(folder), _scratch=folder)
    return side


def _pair(now: Case) -> PlannedPair:
    old = make_case(model="old", batch=now.batch, provider=now.provider.alias)
    return PlannedPair(baseline=Planned(case=old), contender=Planned(case=now))


def test_files_of_both_sides_go_with_the_last_pair_that_needs_them(tmp_path: Path) -> None:
    cases = [make_case(), make_case(batch=4), make_case(provider="cuda")]
    pairs = [_pair(case) for case in cases]
    side = _side(tmp_path, pairs)
    rules: Any = SimpleNamespace(limits=())
    there = []
    for pair in pairs:
        side.judge(pair.contender, rules)
        there.append(len(list(tmp_path.iterdir())))
    # The first two files wait for the third pair; the second pair's own go at once.
    assert there == [2, 2, 0]
