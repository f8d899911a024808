"""A package with an engine of its own, as anybody can bring one: onnx's reference evaluator.

It refuses to run where ONNX Runtime was loaded, and stands in ``sys.path`` by a folder.
"""

from __future__ import annotations

from pathlib import Path

ALIAS = "evaluator"
TITLE = "Reference evaluator"

_DECLARATION = f'''
from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="{ALIAS}",
    title="{TITLE}",
    target="evaluator_engine.running:Evaluator",
    distributions=("onnx",),
)
'''

_RUNNING = """
import sys

from pytest_ortbench.engines.seam import Engine, EngineRefusal


class Evaluator(Engine):
    def load(self):
        import onnx
        import onnx.reference

        self._library = onnx.reference
        return onnx.__version__

    def compile(self):
        if self.task.folder is not None:
            (self.task.folder / "model").write_bytes(self.task.path.read_bytes())
        return self.task.path.stat().st_size

    def open(self):
        if "onnxruntime" in sys.modules:
            raise EngineRefusal("ONNX Runtime was loaded in the process of an engine")
        evaluator = self._library.ReferenceEvaluator(str(self.task.path))
        return lambda feeds: evaluator.run(None, dict(feeds))

    def close(self):
        pass
"""


def write_package(folder: Path) -> Path:
    """Write the package and its metadata into a folder, and return it for ``sys.path``."""
    package = folder / "evaluator_engine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "declaration.py").write_text(_DECLARATION)
    (package / "running.py").write_text(_RUNNING)
    metadata = folder / "evaluator_engine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: evaluator-engine\nVersion: 1.0\n"
    )
    entry = f"[pytest_ortbench.engines]\n{ALIAS} = evaluator_engine.declaration:ENGINE\n"
    (metadata / "entry_points.txt").write_text(entry)
    return folder
