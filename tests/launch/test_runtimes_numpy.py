"""An ONNX Runtime that was built for numpy 1, beside numpy 2 (field case P11)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.launcher import ProcessLauncher

#: Asks for numpy's interface as compiled modules of that time do.
_ASK = "from numpy.core._multiarray_umath import _ARRAY_API"
#: Some report the failure, others lose it on the way, and the first session is a fault.
_REPORTED = f"__version__ = '1.15.1'\n{_ASK}\n"
_LOST = f"""
__version__ = "1.15.1"
try:
    {_ASK}
except (ImportError, AttributeError):
    pass

def get_available_providers():
    return ["CPUExecutionProvider"]

def InferenceSession(*arguments, **options):
    import ctypes
    ctypes.string_at(0)
"""


def old(folder: Path, text: str) -> Runtime:
    """An interpreter with the stand-in for an old wheel."""
    package = folder / "site" / "onnxruntime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(text)
    (folder / "site" / "onnxruntime-1.15.1.dist-info").mkdir()
    paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return Runtime(label="old", environment={"PYTHONPATH": os.pathsep.join(paths)})


@pytest.mark.skipif(np.__version__.startswith("1."), reason="numpy 1 gives its old interface")
@pytest.mark.parametrize("text", [_REPORTED, _LOST], ids=["reported", "lost"])
def test_the_reason_names_both_versions(
    launcher: ProcessLauncher, tmp_path: Path, text: str
) -> None:
    runtime = old(tmp_path, text)
    with pytest.raises(WorkerError) as caught:
        launcher.inspect(runtime)
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "import")
    assert failure.message.startswith("onnxruntime 1.15.1 ")
    assert f"numpy {np.__version__} " in failure.message
    assert ("numpy<2" in failure.hint, "1.19" in failure.hint) == (True, True)
    [outcome] = launcher.probe(runtime, [Provider(alias="cpu", name="CPUExecutionProvider")])
    assert not outcome.usable
    assert outcome.reason == failure.message
