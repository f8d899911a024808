"""Why ONNX Runtime can't be imported, and what installs it."""

from __future__ import annotations

import re

from pytest_ortbench.core.errors import says
from pytest_ortbench.core.namesakes import HOW_TO_MEND
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.diagnose_providers import how_to_install
from pytest_ortbench.launch.evidence import Evidence, failure_of, runtime_of_refusal
from pytest_ortbench.launch.missing_library import missing_library
from pytest_ortbench.launch.native_text import readable

_OLD_NUMPY = (
    "ONNX Runtime before 1.19 needs numpy<2. Run: pip install 'numpy<2'. To leave this "
    "environment as it is, write --ort-runtimes=onnxruntime==1.18.1+numpy==1.26.4"
)
_NO_NUMPY = re.compile(r"No module named '?numpy'?$")


def not_imported(evidence: Evidence) -> Failure | None:
    """An engine or ONNX Runtime that can't be imported."""
    refusal = evidence.refusal
    if refusal.phase != "import":
        return None
    text = readable(refusal.text)
    if refusal.error == "ModuleNotFoundError" and "onnxruntime" in refusal.text:
        return failure_of(
            evidence,
            "unavailable",
            f"ONNX Runtime is not installed in {_python(evidence)}",
            f"{_installing(evidence, 'onnxruntime')}. For an NVIDIA GPU, install onnxruntime-gpu "
            "in its place",
        )
    if refusal.error == "HiddenLibrary":
        return failure_of(evidence, "unavailable", text, HOW_TO_MEND)
    if refusal.error == "BrokenRuntime":
        return failure_of(
            evidence,
            "unavailable",
            f"{text}: another distribution of ONNX Runtime was installed over it, or removed",
            "Uninstall every package whose name begins with onnxruntime ('pip list' shows them). "
            "Then install the one that you need, e.g. with: pip install onnxruntime",
        )
    if refusal.error == "NumpyMismatch":
        return failure_of(
            evidence,
            "unavailable",
            text,
            _OLD_NUMPY,
        )
    if _NO_NUMPY.search(refusal.text):
        message = f"ONNX Runtime needs numpy, which is not installed in {_python(evidence)}"
        return failure_of(evidence, "unavailable", message, _installing(evidence, "numpy"))
    if re.search(r"numpy|_ARRAY_API|multiarray", refusal.text + evidence.log):
        numpy = f"numpy {refusal.numpy}" if refusal.numpy else "the installed numpy"
        return failure_of(
            evidence,
            "unavailable",
            f"ONNX Runtime can't be imported with {numpy}. {says('Python', text or refusal.error)}",
            _OLD_NUMPY,
        )
    library = missing_library(refusal.text)
    return failure_of(
        evidence,
        "unavailable",
        f"ONNX Runtime can't be imported. {says('Python', text)}",
        how_to_install(library, evidence)
        if library
        else _install_again(evidence)
        + "To try another version, write e.g. --ort-runtimes=onnxruntime==1.20.1",
    )


def _install_again(evidence: Evidence) -> str:
    """The step that installs ONNX Runtime again; none for an environment that was made for it."""
    if runtime_of_refusal(evidence).requirements:
        return ""
    command = "pip install --force-reinstall --no-deps onnxruntime"
    return (
        f"Install it again in {_python(evidence)}: {command} (or onnxruntime-gpu, if you use "
        "that). "
    )


def _python(evidence: Evidence) -> str:
    runtime = runtime_of_refusal(evidence)
    if runtime.label == "current":
        return "the Python that runs pytest"
    return f"the Python of the runtime {runtime.label!r}"


def _installing(evidence: Evidence, package: str) -> str:
    """The step that puts a package where the runtime looks for it."""
    runtime = runtime_of_refusal(evidence)
    if runtime.label == "current":
        return f"Run: pip install {package}"
    if runtime.requirements:
        return f"Add {package} to the packages of this runtime"
    return f"In this Python, run: pip install {package}"
