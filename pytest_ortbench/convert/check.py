"""A variant is used only if it loads and its outputs are finite where the source's are."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.convert.failure import unconverted, without_nodes
from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.cpus import allowance
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.recipe import Conversion
from pytest_ortbench.worker.accuracy import fitting
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.outputs import check as look_at
from pytest_ortbench.worker.session import create, session_options

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_PREAMBLE = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : |Load model from \S+ failed: ?")

#: Classes of ONNX Runtime's errors about a file: not about memory, nor about missing kernels.
_OF_THE_FILE = frozenset({"Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf"})


def run_once(conversion: Conversion, target: Path) -> str:
    """Load and run a variant once on the CPU.

    Returns:
        Why it was not run here, empty where it was.

    Raises:
        WorkerError: if it does not load, or if its outputs hold NaN or infinity that the source's
            lack.
    """
    try:
        session = _session(conversion, str(target))
    except Exception as error:
        if _is_missing_kernel(error):
            # Other providers may have it; on the CPU the case itself says the same.
            return (
                "the variant was not run after the conversion, because the CPU provider has no "
                "kernel for one of the nodes"
            )
        raise _not_valid(conversion, f"does not load: {_line(error)}") from error
    try:
        nonfinite = _nonfinite(session, conversion)
    except Exception as error:
        if _runs(conversion, conversion.source):
            raise _not_valid(conversion, f"does not run: {_line(error)}") from error
        return (
            "the variant was not run after the conversion, because the original model refuses the "
            "same inputs"
        )
    finally:
        del session
    if nonfinite:
        source = _session(conversion, conversion.source)
        if not _nonfinite(source, conversion):
            raise _not_valid(
                conversion,
                f"returns {nonfinite} NaN or infinite values where the source returns none",
            )
    return ""


def _session(conversion: Conversion, path: str) -> InferenceSession:
    config = SessionConfig(custom_ops=conversion.custom_ops)
    options = session_options(config, threads=allowance().threads)
    session, _ = create(path, Provider(alias="cpu", name=CPU), options)
    return session


def _nonfinite(session: InferenceSession, conversion: Conversion) -> int:
    feeds, missing = fitting(session, make_feeds(conversion.inputs, seed=conversion.seed))
    if missing:
        raise ValueError(f"the source has no input {missing!r}")
    return look_at("first", session.run(None, feeds)).nonfinite


def refusal_of_source(conversion: Conversion) -> Exception | None:
    """Return what ONNX Runtime says of a source that is no valid model; ``None`` of any other."""
    try:
        _session(conversion, conversion.source)
    except Exception as error:  # noqa: BLE001 - native errors have no common base class
        return error if type(error).__name__ in _OF_THE_FILE else None
    return None


def _runs(conversion: Conversion, path: str) -> bool:
    try:
        _nonfinite(_session(conversion, path), conversion)
    except Exception:  # noqa: BLE001 - native errors have no common base class
        return False
    return True


def _is_missing_kernel(error: Exception) -> bool:
    return type(error).__name__ == "NotImplemented" or "NOT_IMPLEMENTED" in str(error)


def _not_valid(conversion: Conversion, reason: str) -> WorkerError:
    return unconverted(
        f"the {conversion.recipe.base} variant {reason}",
        without_nodes(conversion.recipe),
    )


def _line(error: Exception) -> str:
    """Class and first line, without the path of a draft that is gone by now."""
    text = _PREAMBLE.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def tools() -> str:
    """Versions of the tools: ``onnxruntime 1.32.0, onnx 1.23.2``."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}, onnx {importlib.metadata.version('onnx')}"
