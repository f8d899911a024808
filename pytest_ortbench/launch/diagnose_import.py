"""Why ONNX Runtime can't be imported, and what installs it."""

from __future__ import annotations

import re

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import says
from pytest_ortbench.core.namesakes import HOW_TO_MEND
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.diagnose_providers import how_to_install
from pytest_ortbench.launch.evidence import Evidence, failure_of, made_anew, runtime_of_refusal
from pytest_ortbench.launch.missing_library import missing_library
from pytest_ortbench.launch.native_text import readable

#: What fits an ONNX Runtime of before 1.19.
_OLD_NUMPY = "numpy<2"
#: On Windows it is this that ONNX Runtime lacks or has too old.
_VISUAL_CPP = (
    "Install the newest Visual C++ Redistributable, https://aka.ms/vs/17/release/vc_redist.x64.exe"
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
            f"ONNX Runtime is not installed in {_python(runtime_of_refusal(evidence))}",
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
            _one_distribution(evidence),
        )
    if refusal.error == "NumpyMismatch":
        return failure_of(
            evidence,
            "unavailable",
            text,
            _with_old_numpy(evidence),
        )
    if _NO_NUMPY.search(refusal.text):
        python = _python(runtime_of_refusal(evidence))
        message = f"ONNX Runtime needs numpy, which is not installed in {python}"
        return failure_of(evidence, "unavailable", message, _installing(evidence, "numpy"))
    if re.search(r"numpy|_ARRAY_API|multiarray", refusal.text + evidence.log):
        numpy = f"numpy {refusal.numpy}" if refusal.numpy else "the installed numpy"
        return failure_of(
            evidence,
            "unavailable",
            f"ONNX Runtime can't be imported with {numpy}. {says('Python', text or refusal.error)}",
            _with_old_numpy(evidence),
        )
    library = missing_library(refusal.text)
    return failure_of(
        evidence,
        "unavailable",
        f"ONNX Runtime can't be imported. {says('Python', text)}",
        _VISUAL_CPP
        if "DLL load failed" in refusal.text and not library
        else how_to_install(library, evidence)
        if library
        else _install_again(evidence)
        + "To try another version, write e.g. --ort-runtimes=onnxruntime==1.20.1",
    )


def _one_distribution(evidence: Evidence) -> str:
    """The step where parts of one distribution of ONNX Runtime lie in the place of another."""
    runtime, provider = runtime_of_refusal(evidence), evidence.provider
    of_nvidia = provider is not None and provider.alias in ("cuda", "tensorrt")
    if runtime.requirements:
        return made_anew(runtime)
    there = "" if runtime.label == "current" else f"In {_python(runtime)}, do this: "
    return (
        f"{there}Uninstall every package whose name begins with onnxruntime ('pip list' shows "
        "them). Then install what you need, e.g. with: pip install onnxruntime"
        + ("-gpu" if of_nvidia else "")
    )


def _with_old_numpy(evidence: Evidence) -> str:
    """The step to a numpy that an old ONNX Runtime was built for."""
    rule = f"ONNX Runtime before 1.19 needs {_OLD_NUMPY}"
    runtime = runtime_of_refusal(evidence)
    others = [text for text in runtime.requirements if not re.match(r"numpy\b", text)]
    if others:
        return f"{rule}. Write '--ort-runtimes={'+'.join((*others, _OLD_NUMPY))}'"
    step = f"{rule}. In {_python(runtime)}, run: pip install '{_OLD_NUMPY}'"
    if runtime.label != "current":
        return step
    return (
        f"{step}. To leave this Python as it is, write "
        "--ort-runtimes=onnxruntime==1.18.1+numpy==1.26.4"
    )


def _install_again(evidence: Evidence) -> str:
    """The step that installs ONNX Runtime again; none for an environment that was made for it."""
    runtime = runtime_of_refusal(evidence)
    if runtime.requirements:
        return ""
    command = "pip install --force-reinstall --no-deps onnxruntime"
    return (
        f"Install it again in {_python(runtime)}: {command} (or onnxruntime-gpu, if you use that). "
    )


def _python(runtime: Runtime) -> str:
    if runtime.label == "current":
        return "the Python that runs pytest"
    return f"the Python of the runtime {runtime.label!r}"


def _installing(evidence: Evidence, package: str) -> str:
    """The step that puts a package where the runtime looks for it."""
    runtime = runtime_of_refusal(evidence)
    if runtime.label == "current":
        return f"Run: pip install {package}"
    if runtime.requirements:
        made = "+".join((*runtime.requirements, package))
        return f"Add {package} to the runtime: '--ort-runtimes={made}'"
    return f"In this Python, run: pip install {package}"
