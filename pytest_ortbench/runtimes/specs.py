"""Runtimes as people write them: ``current``, ``auto``, requirement lists, configured names."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pytest_ortbench.core.errors import UsageError, did_you_mean, nearest
from pytest_ortbench.core.ids import escape_part
from pytest_ortbench.core.provider_kinds import KINDS
from pytest_ortbench.runtimes.releases import range_ends

PLACE = "--ort-runtimes"
CURRENT = "current"
AUTO = "auto"

#: ``+`` separates requirements, and also a version from its local part; these are the local parts
#: that builds of ONNX Runtime and its companions have.
_LOCAL_PART = re.compile(r"(cu\d+|rocm[\d.]+|cpu|xpu|git[0-9a-f.]*|g[0-9a-f]{7,})([.\-_]\w+)*")

#: Packages whose name starts alike, but which need ONNX Runtime instead of bringing it.
_COMPANION = re.compile(r"onnxruntime-(extensions|genai|tools|easy|ep-)")

#: A package and a version as other tools join them, or as fingers slip.
_OTHER_JOIN = re.compile(r"(?P<name>[A-Za-z][\w.-]*?) *[=@: ] *(?P<version>\d[\w.]*)")

#: What needs one certain distribution of ONNX Runtime, and so has it installed.
_BRINGS_IT = "onnxruntime-genai"

#: The first version of ONNX Runtime that is built for numpy 2.
_FIRST_WITH_NUMPY_2 = Version("1.19")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementList:
    """Packages that make a runtime.

    Attributes:
        requirements: As in :pep:`508`, in the order of writing, normalised.
    """

    requirements: tuple[str, ...]

    @property
    def request(self) -> str:
        """The same for the same packages in any order and spelling."""
        return "+".join(sorted(self.requirements))

    def label(self, installed: dict[str, str]) -> str:
        """Name the runtime after what was asked for, with the versions that came of it.

        Args:
            installed: Version by normalised name. A package that is not among them has the version
                that was asked for, or none.
        """
        parts = []
        for text in self.requirements:
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            version = installed.get(name) or _pinned(requirement)
            parts.append(f"{name}-{version}" if version else name)
        return "+".join(escape_part(part) for part in parts)

    def to_install(self, *, onnxruntime: str = "") -> list[str]:
        """Return what to install: the requirements, and a limit on numpy where one is known.

        Off Linux psutil, too, which tells a worker its cores and its memory there.

        Args:
            onnxruntime: Version of ONNX Runtime that came of it, if it was installed already.
        """
        parsed = map(Requirement, self.requirements)
        by_name = {str(canonicalize_name(requirement.name)): requirement for requirement in parsed}
        # Beside the plain one the others are plug-ins, which count their own versions.
        runtimes = [by_name["onnxruntime"]] if "onnxruntime" in by_name else by_name.values()
        versions = [onnxruntime or _pinned(runtime) for runtime in runtimes if _is_ort(runtime)]
        more = [] if sys.platform == "linux" or "psutil" in by_name else ["psutil"]
        if "numpy" not in by_name and any(needs_numpy_1(version) for version in versions):
            more.append("numpy<2")
        return [*self.requirements, *more]


def needs_numpy_1(onnxruntime: str) -> bool:
    """Whether a version of ONNX Runtime is built for numpy 1 only; an unknown one is not."""
    return bool(onnxruntime) and Version(onnxruntime) < _FIRST_WITH_NUMPY_2


def split_requirements(text: str) -> list[str]:
    """Split ``onnxruntime==1.30.0+onnxruntime-qnn`` at the signs that separate requirements.

    A sign inside brackets or an URL, or in front of a version's local part (``1.20.0+cu118``) does
    not separate.
    """
    pieces: list[str] = []
    for piece in text.split("+"):
        before = pieces[-1] if pieces else ""
        inside = before.count("[") > before.count("]") or "@" in before
        if pieces and (inside or _LOCAL_PART.fullmatch(piece.strip())):
            pieces[-1] += f"+{piece}"
        else:
            pieces.append(piece)
    return [piece.strip() for piece in pieces]


def parse_requirements(
    pieces: Sequence[str], *, place: str = PLACE, configured: Collection[str] | None = None
) -> RequirementList:
    """Read a requirement list.

    Args:
        pieces: One requirement each.
        place: Where they were written.
        configured: Names of configured runtimes, of which one may be misspelt here; ``None`` where
            only packages can stand.

    Raises:
        UsageError: for what is no requirement, a package that stands twice, or a list without any
            distribution of ONNX Runtime.
    """
    text = "+".join(pieces)
    names: dict[str, Requirement] = {}
    for piece in pieces:
        try:
            requirement = Requirement(piece)
        except InvalidRequirement as error:
            raise UsageError(
                f"pip can't read {piece!r} as a package and a version"
                if piece
                else f"{text!r} has an empty part",
                place=place,
                hint=f"Only 'ortbench bisect' takes a range. Write the releases, e.g. "
                f"{range_ends(piece)}"
                if range_ends(piece)
                else f"Write e.g. {_mended(piece)}, and join several packages with +",
            ) from error
        name = canonicalize_name(requirement.name)
        if name in names:
            raise UsageError(f"{text!r} names {name} twice", place=place, hint="Keep one of them")
        names[name] = requirement
    if not any(_is_ort(each) or name.startswith(_BRINGS_IT) for name, each in names.items()):
        raise _not_onnxruntime(text, names, place, configured)
    return RequirementList(
        requirements=tuple(_normalised(name, constraint) for name, constraint in names.items())
    )


def parse_spec(
    text: str, configured: Collection[str], *, place: str = PLACE
) -> str | RequirementList:
    """Read one specification.

    Args:
        text: As written.
        configured: Names of the configured runtimes.
        place: Where it was written.

    Returns:
        ``current``, ``auto`` or a configured name as it is; else the requirement list.

    Raises:
        UsageError: for anything else.
    """
    stripped = text.strip()
    if stripped in (CURRENT, AUTO) or stripped in configured:
        return stripped
    return parse_requirements(split_requirements(stripped), place=place, configured=configured)


def _mended(piece: str) -> str:
    """A package and a version that were joined in another way, as pip reads them."""
    match = _OTHER_JOIN.fullmatch(piece)
    return f"{match['name']}=={match['version']}" if match else "onnxruntime==1.20.1"


def _not_onnxruntime(
    text: str, names: Collection[str], place: str, configured: Collection[str] | None
) -> UsageError:
    if len(names) == 1:
        (name,) = names
        runtimes = () if configured is None else (CURRENT, AUTO, *configured)
        distributions = {name for kind in KINDS.values() for name in kind.distributions}
        known = (*runtimes, *distributions)
        if name in distributions:
            hint = f"It needs ONNX Runtime beside it. Write {f'onnxruntime+{text}'!r}"
        elif name in KINDS and KINDS[name].distributions:
            # The name of a provider, for what has it.
            hint = f"Did you mean {text.replace(name, KINDS[name].distributions[0], 1)!r}?"
        elif nearest(text, sorted(set(known))):
            hint = did_you_mean(text, known)
        elif not runtimes and not _is_version(text):
            hint = "Add one to the list, e.g. onnxruntime==1.20.1"
        else:
            hint = f"Write a package such as onnxruntime=={text if _is_version(text) else '1.20.1'}"
            hint += f", or one of the names {', '.join(runtimes)}" if runtimes else ""
        return UsageError(
            f"{text!r} is neither a configured runtime nor a package of ONNX Runtime"
            if runtimes
            else f"{text!r} is not a package of ONNX Runtime",
            place=place,
            hint=hint,
        )
    return UsageError(
        f"{text!r} contains no package of ONNX Runtime",
        place=place,
        hint="Add one, e.g. onnxruntime, onnxruntime-gpu or onnxruntime-openvino",
    )


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _is_ort(requirement: Requirement) -> bool:
    """Whether it may bring the package ``onnxruntime``, whoever built it."""
    name = canonicalize_name(requirement.name)
    return not _COMPANION.match(name) and ("onnxruntime" in name or name.startswith("ort-"))


def _pinned(requirement: Requirement) -> str:
    """The version that ``==`` names, empty without one or with a pattern."""
    for specifier in requirement.specifier:
        if specifier.operator == "==" and not specifier.version.endswith(".*"):
            return str(Version(specifier.version))
    return ""


def _normalised(name: str, requirement: Requirement) -> str:
    """``requirement`` with its name in the one spelling that package indexes compare."""
    return str(requirement).replace(requirement.name, name, 1)
