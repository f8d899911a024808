"""Starting up, again and again from fresh processes under known conditions. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import InputSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherShape:
    """Another shape that the plan has for the same model.

    Attributes:
        label: The sizes in which it differs, as in case ids: ``b8``, ``b1/seq:512``.
        inputs: Every input, resolved.
    """

    label: str
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeStart:
    """The first inference of a further shape, in a session that has run others before.

    Attributes:
        label: As in :class:`FurtherShape`.
        first_ns: The first inference.
        again_ns: Median of the three after it.
        reason: Why it did not run; empty otherwise.
    """

    label: str
    first_ns: int = 0
    again_ns: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTrial:
    """One start in a fresh process.

    Attributes:
        page_cache: What was asked of the model's files: ``cold`` (not in memory) or ``warm``.
        resident: Share of their pages that was in memory before the session was created; ``None``
            if it can't be told.
        engines: State of the provider's own cache: ``none``, ``cold`` or ``warm``.
        import_ns: Importing ONNX Runtime, or the engine or framework.
        build_ns: Making the model of its source, weights included, in a framework, which reads its
            files then; ``None`` for what reads an ONNX file.
        session_create_ns: Creating the session, reading the files and compiling included.
        first_inference_ns: The first inference.
        again_ns: Median of the three after it.
        provider_init_ns: As in :class:`~pytest_ortbench.core.measurement.Startup`.
        shapes: First inferences of further shapes, in this order.
        reason: Why the files could not be brought into the asked state; empty if they were.
    """

    page_cache: str
    resident: float | None = None
    engines: str = "none"
    import_ns: int
    session_create_ns: int
    first_inference_ns: int
    again_ns: int
    provider_init_ns: int | None = None
    build_ns: int | None = None
    shapes: tuple[ShapeStart, ...] = ()
    reason: str = ""

    @property
    def create_ns(self) -> int:
        """From the files to what can run: building, where there is any, and creating."""
        return (self.build_ns or 0) + self.session_create_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUps:
    """The start-up pass of a case, or why there is none.

    Attributes:
        trials: In the order in which they were made; every condition comes several times.
        reason: Why there is none; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    trials: tuple[StartTrial, ...] = ()
    reason: str = ""
    interrupted: bool = False
