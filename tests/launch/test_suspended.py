"""A suspended worker whose host is killed does not stay behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.launch.cases import relu

pytestmark = pytest.mark.live

HOST = """
import sys, time
from pathlib import Path
from tests.launch.cases import case_of
from pytest_ortbench.launch.launcher import ProcessLauncher
worker = ProcessLauncher().open(case_of(Path(sys.argv[1])), worker=0, deadline=None)
worker.pause()
print(worker.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prctl")
def test_it_goes_on_and_ends(tmp_path: Path) -> None:
    model = relu(tmp_path / "m.onnx")
    command = [sys.executable, "-c", HOST, str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        worker = psutil.Process(int(host.stdout.readline()))
        assert worker.status() == psutil.STATUS_STOPPED
        host.kill()
    assert psutil.wait_procs([worker], timeout=600)[1] == []
