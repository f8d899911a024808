"""Going on after a run that died late: what was measured is not measured again."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from .runs import QUICK, started, write_model

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]


def test_a_run_that_died_during_its_plots_is_taken_whole(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    (tmp_path / "conftest.py").write_text(
        "import os, time\n"
        "from pytest_ortbench.report import figures\n"
        "def write_figures(*_, **__):\n"
        "    open('plotting', 'w').close()\n"
        "    time.sleep(300)\n"
        "if not os.path.exists('plotting'):\n"
        "    figures.write_figures = write_figures\n"
    )
    arguments = ["m.onnx", "-k", "latency", "--ort-providers=cpu", *QUICK]
    with started(tmp_path, arguments) as killed:
        killed.until((tmp_path / "plotting").exists)
        killed.signal(signal.SIGKILL)
        killed.end()
    (first,) = tmp_path.glob("results/*/run.json")
    assert json.loads(first.read_text())["finished_at"]
    with started(tmp_path, [*arguments, "--ort-resume"]) as following:
        following.end()
        assert following.process.returncode == 0
    (second,) = set(tmp_path.glob("results/*/run.json")) - {first}
    before, after = (json.loads(path.read_text()) for path in (first, second))
    assert (before["resumed"], after["resumed"]) == (0, 1)
    measured = [run["cases"][0]["measurements"] for run in (before, after)]
    assert measured[0] == measured[1]
    assert list(second.parent.glob("plots/*.png"))
