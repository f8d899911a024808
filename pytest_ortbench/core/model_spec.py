"""How models are written: schemes, and endings of files in any letter case.

Nothing is imported here that pytest itself has not imported: every start of pytest pays for it.
"""

from __future__ import annotations

from pathlib import PurePath

#: What a specification begins with that is no path and no name of the project.
SCHEMES = ("zoo:", "builtin:")
ONNX = ".onnx"
#: ONNX Runtime's own format.
ORT = ".ort"
SUFFIXES = (ONNX, ORT)
#: Files of ONNX in one folder, for globs and :mod:`fnmatch`: both heed the letter case.
ONNX_FILES = "*.[oO][nN][nN][xX]"

#: Options of the suite that ``ortbench init`` writes, from the root of the repository.
OPTIONS_FILE = "benchmarks/options.txt"

#: Code of the user's, in which a function makes a model.
PYTHON = ".py"

#: What onnxruntime-genai's builder writes beside a language model; it stands for its folder.
GENAI_CONFIG = "genai_config.json"

#: What TensorFlow writes into a folder of its own; it stands for the folder.
SAVED_MODEL = "saved_model.pb"
#: What libraries write into the folder of a language model, among them its architecture.
CONFIG = "config.json"
#: Where those who publish such a folder put its ONNX file, and how that is mostly called.
ONNX_FOLDER, MAIN_ONNX = "onnx", "model.onnx"


def is_onnx_file(path: PurePath) -> bool:
    """Whether a path ends as files of ONNX do."""
    return path.suffix.lower() == ONNX


def is_model_file(path: PurePath) -> bool:
    """Whether a path ends as a model file does."""
    return path.suffix.lower() in SUFFIXES


def is_by_name(spec: str) -> bool:
    """Whether a specification names a model of the zoo or a built one, and no file."""
    return spec.startswith(SCHEMES)


def function_file(spec: str) -> str:
    """Return the Python file of ``FILE.py:FUNCTION``; empty for what is not written so."""
    file, colon, _ = spec.rpartition(":")
    file = file.removesuffix(":")
    return file if colon and PurePath(file).suffix.lower() == PYTHON else ""
