"""Is a framework's row what a script by hand says? Run: ``python benchmarks/framework_rates.py``.

A network of PyTorch is exported, and timed eagerly and under ONNX Runtime: by the package, and by a
script of a few lines on the same library. Each library has a process of its own, in which the
package and the script run blocks of inferences in turns, in random order, on one thread; both get
new models every few blocks, since where weights lie moves either. Goals: the median of the paired
ratios of time per inference is within 5 % on both sides, and so is what follows of them, how many
times as fast ONNX Runtime is. It takes two minutes, and needs torch, onnx and onnxscript.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fidelity import Estimate, median_of

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.source import Source
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.worker.entry import exported_by, loaded
from pytest_ortbench.worker.memory import give_back_free_memory
from pytest_ortbench.worker.standard import opened_as

NETWORK = '''"""A small network for images."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [(3, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
        self.body = nn.Sequential(*(
            nn.Sequential(nn.Conv2d(a, b, 3, s, 1), nn.BatchNorm2d(b), nn.ReLU())
            for a, b, s in sizes
        ))
        self.head = nn.Linear(128, 10)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))


def build():
    torch.manual_seed(0)
    settings = {"outputs": ["scores"], "dynamic": {"image": {0: "batch"}}}
    return Net(), (torch.zeros(1, 3, 64, 64),), settings
'''
_SECONDS, _BLOCK_NS, _PAIRS_A_MODEL, _LEAST_PAIRS = 50.0, 30_000_000, 10, 60
_TOLERANCE, _KNOWN_TO = 0.05, 0.01

#: Runs some inferences in a row, and returns the nanoseconds of one.
Block = Callable[[int], float]


def main() -> int:
    """Compare both sides, and print one row each; 1 if a goal is missed, 2 if undecided."""
    verdicts: set[str] = set()
    hand: dict[str, float] = {}
    ratios: dict[str, Estimate] = {}
    print(
        f"{'library':12} {'by hand':>10} {'pairs':>6} {'ours / by hand, 95 % interval':>34}  goal"
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "net.py").write_text(NETWORK, encoding="utf-8")
        for step in ("export", "torch", "cpu"):
            command = [sys.executable, __file__, step, folder]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            if step == "export":
                continue
            facts = json.loads(done.stdout.splitlines()[-1])
            found = ratios[step] = median_of(facts["ratios"])
            verdict = found.verdict(_TOLERANCE)
            verdicts.add(verdict)
            hand[step] = facts["hand_ns"]
            text = f"{found.value:+.2%} [{found.low:+.2%}, {found.high:+.2%}]"
            print(
                f"{facts['library']:12} {hand[step] / 1e6:8.3f}ms {len(facts['ratios']):6} "
                f"{text:>34}  5 %: {verdict}",
                flush=True,
            )
    torch, cpu = ratios["torch"], ratios["cpu"]
    # Of the pairs, since the two processes ran one after the other.
    apart = Estimate(
        value=(1 + torch.value) / (1 + cpu.value) - 1,
        low=(1 + torch.low) / (1 + cpu.high) - 1,
        high=(1 + torch.high) / (1 + cpu.low) - 1,
    )
    verdict = apart.verdict(_TOLERANCE)
    verdicts.add(verdict)
    print(
        f"by hand ONNX Runtime is {hand['torch'] / hand['cpu']:.2f} times as fast; ours says "
        f"{apart.value:+.2%} [{apart.low:+.2%}, {apart.high:+.2%}] of that  5 %: {verdict}"
    )
    return 1 if "MISSED" in verdicts else 2 if "undecided" in verdicts else 0


def export(folder: Path) -> None:
    """Write the ONNX file, as the package does."""
    entry, kind = loaded(folder / "net.py", "build")
    exported_by(kind, entry, folder / "net.onnx", {})


def compare(folder: Path, alias: str) -> None:
    """Print the facts of one library as a line of JSON."""
    case = _case(folder, alias)
    by_hand = _torch_by_hand if alias == "torch" else _onnxruntime_by_hand
    draw = random.Random(0)
    ends = time.monotonic() + _SECONDS
    ratios: list[float] = []
    times: list[float] = []
    while len(ratios) < _LEAST_PAIRS or (
        time.monotonic() < ends and median_of(ratios).half_width > _KNOWN_TO
    ):
        sides: dict[str, Block] = {}
        for side in draw.sample(["ours", "hand"], 2):
            # Ours gives back what is free before its baseline of memory is read: so does the other.
            give_back_free_memory()
            sides[side] = _ours(case) if side == "ours" else by_hand(folder, case)
        count = max(1, int(_BLOCK_NS / max(block(20) for block in sides.values())))
        for _ in range(_PAIRS_A_MODEL):
            pair = {side: sides[side](count) for side in draw.sample(["ours", "hand"], 2)}
            ratios.append(pair["ours"] / pair["hand"] - 1)
            times.append(pair["hand"])
        sides.clear()
        gc.collect()
    library = {"torch": "PyTorch", "cpu": "ONNX Runtime"}[alias]
    facts = {"library": library, "ratios": ratios, "hand_ns": statistics.median(times)}
    print(json.dumps(facts))


def _ours(case: Case) -> Block:
    measured = opened_as(case)(case, lambda _: None)
    measured.open()
    gc.unfreeze()  # nothing by hand goes on with objects that are frozen
    return lambda count: sum(measured.run_timed(count)) / count


def _torch_by_hand(folder: Path, _case: Case) -> Block:
    import numpy as np
    import torch

    sys.path.insert(0, str(folder))
    import net  # what was written above

    torch.set_num_threads(1)
    model = net.build()[0].eval()
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64), np.float32)

    def block(count: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(count):
            with torch.inference_mode():
                model(torch.from_numpy(image)).numpy()
        return (time.perf_counter_ns() - started) / count

    return block


def _onnxruntime_by_hand(_folder: Path, case: Case) -> Block:
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(case.variant.path, options, providers=["CPUExecutionProvider"])
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64), np.float32)

    def block(count: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(count):
            session.run(None, {"image": image})
        return (time.perf_counter_ns() - started) / count

    return block


def _case(folder: Path, alias: str) -> Case:
    """The row of a library: the file under ONNX Runtime, or its source under PyTorch."""
    providers: dict[str, Any] = {
        "cpu": Provider(alias="cpu", name="CPUExecutionProvider"),
        "torch": Provider(alias="torch", name="PyTorch", role="framework"),
    }
    request = PlanRequest(models=(str(folder / "net.onnx"),), threads=(1,))
    (read,) = resolve_models(request.models, root=folder)
    source = Source(path=str(folder / "net.py"), function="build", framework="torch")
    model = replace(read, exported_from=source)
    target = Target(runtime=Runtime(), providers=(providers[alias],))
    (planned,) = build_plan(request, [model], [target]).entries
    assert planned.refusal is None, planned.refusal
    return planned.case


if __name__ == "__main__":
    if sys.argv[1:2] == ["export"]:
        export(Path(sys.argv[2]))
    elif sys.argv[1:]:
        compare(Path(sys.argv[2]), sys.argv[1])
    else:
        sys.exit(main())
