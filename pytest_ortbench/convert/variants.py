"""Variants on disk: each is made once, by one process at a time, and kept for every later run."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import platform
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_ortbench.convert.failure import conversion_failure
from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.outcome import CHANGED_FILE, Failure
from pytest_ortbench.core.recipe import TIED_LEVELS, Conversion, Converted
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.kept_folders import KeptFolders
from pytest_ortbench.runtimes.installed import installed
from pytest_ortbench.schema.model_questions import Convert
from pytest_ortbench.schema.wire import to_plain

#: Version of the conversions themselves: another one makes every file again.
CONVERSIONS = 3

#: Name of the folder of made variants in the user's cache.
VARIANTS_FOLDER = "variants"

_CHUNK = 1 << 20


@dataclass(slots=True)
class Variants:
    """Makes the files that cases need, at the first time that one needs it.

    Attributes:
        launcher: Starts the workers that convert.
        folder: Where they are kept, one folder a variant.
    """

    launcher: Launcher
    folder: Path
    _known: dict[str, Converted | Failure] = field(default_factory=dict)
    _keys: dict[Conversion, str] = field(default_factory=dict)
    #: Of sources that ONNX Runtime does not load, by their digest: nothing is made of them.
    _broken: dict[str, Failure] = field(default_factory=dict)

    def prepare(self, case: Case, conversion: Conversion) -> Case:
        """Return the case with the file that it needs, made if it is not there yet.

        Args:
            case: The case as it was planned.
            conversion: What it needs.

        Raises:
            WorkerError: if it can't be made; the same failure again for every further case.
        """
        key = self._key(conversion)
        if key not in self._known:
            broken = self._broken.get(conversion.digest)
            self._known[key] = broken or self._obtain(key, conversion, case.sampling.timeout_s)
        made = self._known[key]
        if isinstance(made, Failure) and made.phase == "session":
            self._broken[conversion.digest] = made
        if isinstance(made, Failure):
            raise WorkerError(made)
        variant = replace(
            case.variant,
            path=str(self.folder / key / made.file),
            digest=made.digest,
            size_bytes=made.size_bytes,
            recipe={**case.variant.recipe, **made.facts},
            external_files=made.external_files,
            notes=(*case.variant.notes, *made.notes),
            unchecked=made.unchecked,
        )
        return replace(case, variant=variant)

    def keeps(self, conversion: Conversion) -> bool:
        """Return whether the file of a conversion is there, made by this run or an earlier one."""
        try:
            key = self._key(conversion)
        except OSError:  # of calibration data that is gone, which making the file will tell
            return False
        return (self.folder / key).is_dir()

    def _key(self, conversion: Conversion) -> str:
        if conversion not in self._keys:
            self._keys[conversion] = variant_key(conversion)
        return self._keys[conversion]

    def _obtain(self, key: str, conversion: Conversion, timeout_s: float) -> Converted | Failure:
        deadline = time.monotonic() + timeout_s
        refusal = self._folders.refusal()
        if refusal is not None:
            return refusal
        return self._folders.obtain(
            key,
            lambda: self._make(key, conversion, deadline),
            timeout_s=timeout_s,
            what="making this variant",
            hint="Run again when that process has ended. To wait longer, add e.g. "
            f"--ort-timeout={2 * timeout_s:.0f}",
        )

    @property
    def _folders(self) -> KeptFolders[Converted]:
        return KeptFolders(
            root=self.folder,
            kind="variant",
            record=Converted,
            phase="convert",
            kept="what is converted is kept there",
        )

    def _make(self, key: str, conversion: Conversion, deadline: float) -> Converted:
        def fill(draft: Path) -> Converted:
            # The tools need onnx, which this interpreter has and a made runtime need not have; and
            # what they leave in memory must not be there when something is measured.
            question = Convert(conversion=conversion, folder=str(draft))
            label = f"{Path(conversion.source).stem}-{conversion.recipe.name}"
            made = self.launcher.ask(question, deadline=deadline, label=label)
            if variant_key(conversion) != key:
                raise WorkerError(_other_calibration(conversion))
            return made

        folder, _ = self._folders.make(self.folder, fill, lambda _: key)
        kept = self._folders.whole(key)
        if kept is None:
            raise WorkerError(_not_as_said(folder))
        return kept


def _not_as_said(folder: Path) -> Failure:
    return conversion_failure(
        f"the converted file in {folder} has changed since it was written",
        "Run again. If this happens twice, report it as a defect of pytest-ortbench",
        kind="error",
    )


def _other_calibration(conversion: Conversion) -> Failure:
    place = conversion.recipe.calibration_data
    named = f" in {place}" if place else " (--ort-inputs)" if conversion.calibration else ""
    return case_failure(
        f"the calibration data{named} changed while the model was converted with it",
        "Wait until no program writes to the data any more, and run again",
        kind="error",
        phase=CHANGED_FILE,
    )


def variant_key(conversion: Conversion) -> str:
    """Digest over all that decides the file: source, recipe, calibration data, tools."""
    recipe = {**conversion.recipe.settings()}
    # It decides what becomes of the measured case, not what the file is.
    recipe.pop("sqnr_floor_db", None)
    recipe.pop("calibration_data", None)
    deciding: dict[str, object] = {
        "conversions": CONVERSIONS,
        "source": conversion.digest,
        "recipe": recipe,
        "tools": _tools(),
    }
    if conversion.recipe.simplify or conversion.recipe.base == "simplified":
        deciding["onnxslim"] = _version("onnxslim")
    if conversion.recipe.base == "optimized" and conversion.recipe.level in TIED_LEVELS:
        deciding["hardware"] = _hardware()
    if conversion.recipe.base == "int8-static":
        deciding["stored"] = bool(conversion.recipe.calibration_data or conversion.calibration)
        deciding["calibration"] = (
            [_content(spec) for specs in conversion.calibration for spec in specs]
            if conversion.calibration
            else [to_plain(conversion.inputs), conversion.seed]
        )
    text = json.dumps(deciding, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


@functools.cache
def _tools() -> dict[str, str]:
    """Versions of what converts, without importing any of it."""
    versions = {
        distribution.name: distribution.version for distribution in installed().distributions
    }
    for name in ("onnx", "numpy", "onnx-ir", "ml-dtypes"):
        versions[name] = _version(name)
    return versions


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _hardware() -> str:
    """What the layout of an optimised graph is made for: kind and features of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return f"{platform.machine()} {flags}"


def _content(spec: InputSpec) -> list[str]:
    hasher = hashlib.sha256()
    with Path(spec.path).open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return [spec.name, spec.member, hasher.hexdigest()]
