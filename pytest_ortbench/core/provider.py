"""What a model is to run on: an execution provider, a chain of them, or another engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ortbench.core.provider_kinds import BY_NAME, CPU, ON_CPUS, OPENVINO

#: What runs a model: a session of ONNX Runtime on an execution provider; another engine, on the
#: same file; the framework that it was exported from, on its source; a service, whatever runs in
#: it, that is asked over a network.
ROLES = ("provider", "engine", "framework", "endpoint")


def role_note(role: str) -> str:
    """Return what stands behind a name for people: `` (engine)``; empty for execution providers.

    Args:
        role: One of :data:`ROLES`.
    """
    if role == "endpoint":
        return " (service)"
    return "" if role == ROLES[0] else f" ({role})"


#: What stands between the links of a chain of providers: ``tensorrt~cuda~cpu``.
CHAIN = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterLink:
    """A provider that takes nodes which the links of a chain before it leave.

    Attributes:
        alias: As of a provider by itself; so are the others.
        name: ONNX Runtime's name.
        device: Empty for the provider's default.
        options: Passed through.
        library: Of a plug-in.
    """

    alias: str
    name: str
    device: str = ""
    options: dict[str, str] = field(default_factory=dict)
    library: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An execution provider as it was asked for, or what runs a model in its place.

    Of a chain, a list of providers in the order in which they take nodes, it is the first one.

    Attributes:
        alias: Short name, ``cuda``; the name that ids and tables use.
        name: ONNX Runtime's name, ``CUDAExecutionProvider``; the title of an engine.
        device: Device part of ``alias:DEVICE``, empty for the provider's default.
        options: Provider options, passed through.
        library: Path of a plug-in provider's library, empty for a built-in one.
        named: Whether the user asked for it by name (a failure), or it came from ``all`` (a note).
        role: One of :data:`ROLES`.
        then: The links behind it, in order; empty where this is no chain.
    """

    alias: str
    name: str
    device: str = ""
    options: dict[str, str] = field(default_factory=dict)
    library: str = ""
    named: bool = True
    role: str = "provider"
    then: tuple[LaterLink, ...] = ()

    @classmethod
    def chain(cls, links: Iterable[Provider]) -> Provider:
        """Return the chain of some providers, or the provider where it is one.

        Args:
            links: At least one, none of them a chain.
        """
        first, *others = links
        later = (
            LaterLink(
                alias=link.alias,
                name=link.name,
                device=link.device,
                options=link.options,
                library=link.library,
            )
            for link in others
        )
        return replace(first, then=tuple(later))

    @property
    def links(self) -> tuple[Provider, ...]:
        """The providers of the chain, each by itself; the provider alone where it is none."""
        if not self.then:
            return (self,)
        later = (
            Provider(
                alias=link.alias,
                name=link.name,
                device=link.device,
                options=link.options,
                library=link.library,
                named=self.named,
            )
            for link in self.then
        )
        return (replace(self, then=()), *later)

    def of_links(self, change: Callable[[Provider], Provider]) -> Provider:
        """Return the chain of its changed links, or the provider changed where it is none.

        Args:
            change: Makes of one link another one.
        """
        changed = Provider.chain(map(change, self.links))
        return self if changed == self else changed

    @property
    def is_execution_provider(self) -> bool:
        """Whether a session of ONNX Runtime runs on it."""
        return self.role == "provider"

    @property
    def is_endpoint(self) -> bool:
        """Whether a service is asked, of which only answers and times are known."""
        return self.role == "endpoint"

    @property
    def computes_on_host(self) -> bool:
        """Whether nothing but the CPUs of the machine computes.

        An engine or a framework that was given no device is taken to compute there.
        """
        if self.is_endpoint:
            return False
        if self.is_execution_provider:
            return all(link.name == CPU for link in self.links)
        return self.device.lower() in ("", "cpu")

    @property
    def works_on_cpus(self) -> bool:
        """Whether the CPUs of the machine compute, under whichever name; asked of one link."""
        device = self.options.get("device_type", self.device).upper()
        is_told = self.name == OPENVINO and device == "CPU"
        return self.computes_on_host or self.name in ON_CPUS or is_told

    def runs_on_cpus(self, devices: Mapping[str, Sequence[str]]) -> bool | None:
        """Return whether nothing but CPUs of the machine computes; ``None`` where nothing tells.

        Args:
            devices: What a runtime saw that a provider can compute on, by its full name. It
                decides where no device was asked for, and the name of the provider does not.
        """
        if not self.is_execution_provider:
            return self.computes_on_host
        answers = [link._runs_on_cpus(devices.get(link.name, ())) for link in self.links]
        if False in answers:
            return False
        return None if None in answers else True

    def _runs_on_cpus(self, devices: Sequence[str]) -> bool | None:
        if self.works_on_cpus:
            return True
        told = self.options.get("device_type", self.device).upper()
        # ``HETERO:GPU.1,CPU``
        named = {word.partition(".")[0] for word in told.replace(":", ",").split(",")}
        is_elsewhere = self.name in BY_NAME and self.name != OPENVINO
        if is_elsewhere or named & {"GPU", "NPU"}:
            return False
        return {device.upper() for device in devices} == {"CPU"} if devices else None

    @property
    def label(self) -> str:
        """``alias`` or ``alias:DEVICE``, of a chain those of all links with ``~`` between them."""
        if self.then:
            return CHAIN.join(link.label for link in self.links)
        return f"{self.alias}:{self.device}" if self.device else self.alias

    @property
    def role_note(self) -> str:
        """What stands behind its name for people, see :func:`role_note`."""
        return role_note(self.role)

    @property
    def described(self) -> str:
        """The label and what it is, for people: ``openvino-native (engine)``."""
        return self.label + self.role_note
