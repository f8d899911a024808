"""A frame from raw data to answer: the user's stages around inference. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.python_profile import PythonProfile
from pytest_ortbench.core.samples import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameBlock:
    """Some frames in a row, one after the other or overlapped, as the worker hands them over.

    Attributes:
        preprocess_ns: Time in the user's ``preprocess``, one entry a frame; empty without one.
        inference_ns: Time in ``session.run``.
        postprocess_ns: Time in the user's ``postprocess``; empty without one.
        frame_ns: From the raw frame to the answer. Overlapped frames wait in between.
        wall_ns: Wall time of the whole block; overlapped from the first answer to the last.
        cpu_ns: CPU time of the process meanwhile, all threads.
    """

    preprocess_ns: tuple[int, ...] = ()
    inference_ns: tuple[int, ...]
    postprocess_ns: tuple[int, ...] = ()
    frame_ns: tuple[int, ...]
    wall_ns: int
    cpu_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagesReady:
    """The user's file is loaded, and every frame went through once.

    Attributes:
        functions: What the file defines, of ``frames``, ``preprocess``, ``postprocess``.
        frames: How many different frames there are.
        typical_ns: What a frame took at the end of the warm-up.
    """

    functions: tuple[str, ...]
    frames: int
    typical_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWorker:
    """Frames of one worker, warm-up excluded.

    Attributes:
        frame: Whole frames, one after the other.
        inference: Inference in them.
        preprocess: The user's preprocessing in them; ``None`` without one.
        postprocess: Likewise.
        overlapped: Frames that went through with a thread for each stage, between the first
            answer and the last; 0 if that was not measured.
        overlapped_ns: Wall time that these took.
    """

    frame: Samples
    inference: Samples
    preprocess: Samples | None = None
    postprocess: Samples | None = None
    overlapped: int = 0
    overlapped_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages of a case, or why they were not measured.

    Attributes:
        file: Name of the user's file.
        digest: SHA-256 of it, hexadecimal.
        functions: What it defines, of ``frames``, ``preprocess``, ``postprocess``.
        frames: How many different frames went round.
        workers: One entry a worker process.
        python: What profilers of Python found in them, in a worker of their own.
        reason: Why there is nothing; empty otherwise.
        faulty: Whether the user's code is the reason.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    file: str = ""
    digest: str = ""
    functions: tuple[str, ...] = ()
    frames: int = 0
    workers: tuple[StageWorker, ...] = ()
    python: tuple[PythonProfile, ...] = ()
    reason: str = ""
    faulty: bool = False
    interrupted: bool = False
