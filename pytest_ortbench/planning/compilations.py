"""Compiled files on disk: a provider compiles each once, and it is kept until anything changes.

They lie in the user's cache. What decides on one is the content of the model, the provider with its
options and library, the session's options, the versions of ONNX Runtime, and this machine.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.compilation import Compilation
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.file_digest import content_of
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.models.kept_folders import KeptFolders
from pytest_ortbench.schema.model_questions import CompileModel
from pytest_ortbench.schema.wire import to_plain

#: Version of how files are compiled and kept: another one makes every file again.
COMPILATIONS = 1
#: Name of their folder in the user's cache.
COMPILED_FOLDER = "compiled"

#: Facts of the machine that a compiled file may be made for.
_OF_MACHINE = ("cpu", "cpu_flags", "architecture", "system")


@dataclass(slots=True)
class Compilations:
    """Has providers compile the files of cases, each at the first time that a case needs it.

    Attributes:
        launcher: Starts the workers that compile.
        folder: Where compiled files are kept, one folder each.
    """

    launcher: Launcher
    folder: Path
    _known: dict[str, Compilation | Failure] = field(default_factory=dict)

    def prepare(self, case: Case) -> Case:
        """Return a case with its compiled file.

        Args:
            case: The case with the plain file of its variant.

        Raises:
            WorkerError: if it can't be compiled; the same failure again for every further case.
        """
        variant = case.variant
        key = compilation_key(case, self.launcher.inspect(case.runtime))
        if key not in self._known:
            self._known[key] = self._obtain(key, case)
        made = self._known[key]
        if isinstance(made, Failure):
            raise WorkerError(made)
        return replace(
            case,
            variant=replace(
                variant,
                path=str(self.folder / key / made.file),
                digest=made.digest,
                size_bytes=made.size_bytes,
                external_files=made.external_files,
                compilation=replace(
                    made,
                    source=variant.path,
                    source_digest=variant.digest,
                    source_bytes=variant.size_bytes,
                ),
            ),
        )

    def _obtain(self, key: str, case: Case) -> Compilation | Failure:
        refusal = self._folders.refusal()
        if refusal is not None:
            return refusal
        deadline = time.monotonic() + case.sampling.timeout_s
        return self._folders.obtain(
            key,
            lambda: self._make(key, case, deadline),
            timeout_s=case.sampling.timeout_s,
            what="compiling this model",
            hint="Run again when that process has ended. To wait longer, add e.g. "
            f"--ort-timeout={2 * case.sampling.timeout_s:.0f}",
        )

    @property
    def _folders(self) -> KeptFolders[Compilation]:
        return KeptFolders(
            root=self.folder,
            kind="compiled",
            record=Compilation,
            phase="compile",
            kept="compiled models are kept there",
        )

    def _make(self, key: str, case: Case, deadline: float) -> Compilation:
        def fill(draft: Path) -> Compilation:
            question = CompileModel(case=case, folder=str(draft))
            return self.launcher.ask(question, deadline=deadline)

        folder, _ = self._folders.make(self.folder, fill, lambda _: key)
        kept = self._folders.whole(key)
        if kept is None:
            raise case_error(
                f"the compiled file in {folder} is incomplete, or was changed after it was written",
                "Check that its disk has free space, and run again",
                kind="error",
                phase="compile",
            )
        return kept


def compilation_key(case: Case, info: RuntimeInfo) -> str:
    """Digest over all that decides on a compiled file.

    Args:
        case: The case with the plain file of its variant.
        info: What its runtime says of itself.
    """
    library = info.plugin_libraries.get(case.provider.name, case.provider.library)
    machine = fingerprint().stable
    deciding = {
        "compilations": COMPILATIONS,
        "source": case.variant.digest,
        "provider": [case.provider.name, case.provider.device, case.provider.options],
        "library": [library, content_of(library) if library else ""],
        "session": to_plain(case.session),
        "operators": [content_of(path) for path in case.session.custom_ops],
        "distributions": info.distributions,
        "version": [info.version, info.build],
        "devices": info.devices,
        "machine": [machine.get(name, "") for name in _OF_MACHINE],
    }
    text = json.dumps(deciding, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]
