"""The arena of ONNX Runtime's environment, which sessions take memory of the CPU from if told to.

A session reads the name of its allocator, and uses another one without a word where none fits. So
the host lets a process of its own take a large first chunk before it believes in an arena
(:class:`~pytest_ortbench.launch.launcher.ArenaProofs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.session_entries import ENVIRONMENT_ALLOCATORS
from pytest_ortbench.worker.runtime import load

if TYPE_CHECKING:
    from onnxruntime import SessionOptions

#: ONNX Runtime's numbers of the strategies; -1 stands for its default, as for sizes.
_STRATEGIES = {"": -1, "kNextPowerOfTwo": 0, "kSameAsRequested": 1}
_DEFAULT = -1


class ArenaMissing(Exception):
    """This ONNX Runtime can't be given an arena."""


def use_arena(options: SessionOptions, config: SessionConfig) -> None:
    """Let a session take memory from the environment's arena, which is made first.

    An environment has one arena for the CPU, so all sessions of a process must ask for the same.

    Args:
        options: The session's.
        config: What was asked for; without an arena nothing happens.

    Raises:
        ArenaMissing: if this ONNX Runtime has no such arena.
    """
    if not config.sets_arena:
        return
    wanted = (config.arena_extend_strategy, config.arena_initial_chunk_bytes)
    if not _registered:
        _register(*wanted)
        _registered.append(wanted)
    options.add_session_config_entry(ENVIRONMENT_ALLOCATORS, "1")


#: What the arena of this process was made with; nobody can make a second one.
_registered: list[tuple[str, int | None]] = []


def _register(strategy: str, chunk_bytes: int | None) -> None:
    ort: Any
    ort, _ = load()
    missing = [
        name
        for name in ("OrtArenaCfg", "OrtMemoryInfo", "create_and_register_allocator")
        if not hasattr(ort, name)
    ]
    if missing:
        raise ArenaMissing(f"ONNX Runtime {ort.__version__} has no {missing[0]}")
    chunk = _DEFAULT if chunk_bytes is None else chunk_bytes
    # No limit of memory: *seen* with 1.32, one of a byte stops nothing.
    arena = ort.OrtArenaCfg(0, _STRATEGIES[strategy], chunk, _DEFAULT)
    place = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    ort.create_and_register_allocator(place, arena)
