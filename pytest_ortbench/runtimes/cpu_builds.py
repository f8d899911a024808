"""PyTorch's builds for CPUs alone: on Linux the package index has those with gigabytes of CUDA."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

#: Where these builds are, beside the package index; their versions end with ``+cpu``.
INDEX = "https://download.pytorch.org/whl/cpu"
#: Packages that have them.
_FAMILY = frozenset({"torch", "torchvision", "torchaudio"})
_LOCAL = "cpu"


class NoVersion(Exception):
    """A package of PyTorch stands without ``==``, so that no build of it can be told apart.

    Attributes:
        package: Its name.

    Args:
        package: As above.
    """

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self.package = package


def as_cpu_builds(requirements: Sequence[str]) -> list[str]:
    """Return requirements that ask for PyTorch's builds for CPUs; all others are unchanged.

    A version that says its build already, or comes from an URL, stays.

    Args:
        requirements: As in :pep:`508`.

    Raises:
        NoVersion: if one has no version.
    """
    return [_as_cpu_build(text) for text in requirements]


def wants_cpu_build(requirements: Sequence[str]) -> bool:
    """Whether any requirement asks for such a build."""
    return any(
        canonicalize_name(requirement.name) in _FAMILY
        and any(Version(version).local == _LOCAL for version in _exact(requirement))
        for requirement in map(Requirement, requirements)
    )


def _as_cpu_build(text: str) -> str:
    requirement = Requirement(text)
    if canonicalize_name(requirement.name) not in _FAMILY or requirement.url:
        return text
    versions = _exact(requirement)
    if not versions:
        raise NoVersion(requirement.name)
    if Version(versions[0]).local:
        return text
    requirement.specifier = SpecifierSet(f"=={versions[0]}+{_LOCAL}")
    return str(requirement)


def _exact(requirement: Requirement) -> list[str]:
    """The versions that ``==`` names, without patterns."""
    return [
        specifier.version
        for specifier in requirement.specifier
        if specifier.operator == "==" and not specifier.version.endswith(".*")
    ]
