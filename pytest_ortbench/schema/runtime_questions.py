"""What the host asks about an interpreter with ONNX Runtime and its providers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.measurement import Placement, RuntimeInfo
from pytest_ortbench.schema.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect(Question[RuntimeInfo]):
    """Import ONNX Runtime and describe this interpreter, with the plug-ins that are found.

    Attributes:
        plugins: Libraries of plug-ins that the project has configured, by name of the provider.
        load_plugins: Whether plug-ins are looked for and loaded at all.
    """

    plugins: dict[str, str] = field(default_factory=dict)
    load_plugins: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What executed the tiny models.

    Attributes:
        placements: By name of the model.
        refused: Native message by name of each model that did not run.
    """

    placements: dict[str, Placement]
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProvider(Question[Probed]):
    """Run two tiny models on a provider and say what executed them."""

    opens_session: ClassVar[bool] = True

    provider: Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTaken:
    """What a process mapped for a session in an arena.

    Attributes:
        risen_bytes: Rise of its mapped memory; ``None`` where that is not known.
        reason: Why not; empty otherwise.
    """

    risen_bytes: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeChunk(Question[ChunkTaken]):
    """Run a tiny model in an arena of the CPU that has a large first chunk.

    Attributes:
        strategy: How the arena grows, by ONNX Runtime's name.
        chunk_bytes: Size of the first chunk.
    """

    opens_session: ClassVar[bool] = True

    strategy: str
    chunk_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRuntime(Question[None]):
    """Import ONNX Runtime, so that it is there when a case is opened."""
