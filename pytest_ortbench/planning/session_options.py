"""``--ort-session-option=K=V``: field names of ONNX Runtime, or config entries (with a dot)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.session_entries import (
    DOCUMENTED,
    ENVIRONMENT_ALLOCATORS,
    NO_COMPILE,
    SPINNING,
)

_PLACE = "--ort-session-option"
_BOOLS = {"1": True, "true": True, "0": False, "false": False}
#: Options that are numbers, and an example of each.
_EXAMPLES = {
    "intra_op_num_threads": 4,
    "inter_op_num_threads": 2,
    "arena_initial_chunk_bytes": 2**20,
}
_INTEGERS = tuple(_EXAMPLES)
_FLAGS = ("enable_mem_pattern", "enable_mem_reuse", "enable_cpu_mem_arena")
#: ONNX Runtime keeps it in 32 bits.
_LARGEST_CHUNK = 2**31 - 1
#: Options of ONNX Runtime that a run decides by itself.
_OWN_OF_RUNS = (
    "enable_profiling",
    "log_severity_level",
    "log_verbosity_level",
    "logid",
    "optimized_model_filepath",
    "profile_file_prefix",
    "use_per_session_threads",
)
GRAPH_LEVELS = ("disable", "basic", "extended", "layout", "all")
_CHOICES = {
    "graph_optimization_level": GRAPH_LEVELS,
    "execution_mode": ("sequential", "parallel"),
    "arena_extend_strategy": ("kNextPowerOfTwo", "kSameAsRequested"),
}
#: All that can be set but for config entries.
SESSION_OPTIONS = (*_INTEGERS, *_FLAGS, *_CHOICES)


def apply_session_options(config: SessionConfig, options: Mapping[str, str]) -> SessionConfig:
    """Return ``config`` with ``options`` set.

    A key with a dot (``session.disable_prepacking``) is a config entry and passed through, any
    other must be a field that ONNX Runtime's ``SessionOptions`` has and that a case records.

    Raises:
        UsageError: for an unknown key or a value that does not fit.
    """
    fields: dict[str, Any] = {}
    entries = dict(config.entries)
    for key, value in options.items():
        if "." in key:
            entries[key] = _documented(key, value)
        elif key in _INTEGERS:
            fields[key] = _positive(key, value)
        elif key in _FLAGS:
            fields[key] = _boolean(key, value)
        elif key in _CHOICES:
            fields[key] = _choice(key, value, _CHOICES[key])
        else:
            raise UsageError(
                f"{key!r} is not a session option that can be set",
                place=_PLACE,
                hint="Leave it out"
                if key in _OWN_OF_RUNS
                else did_you_mean(
                    key,
                    SESSION_OPTIONS,
                    "If you mean a config entry of ONNX Runtime, write its full name, e.g. "
                    "session.intra_op.allow_spinning=0",
                ),
            )
    made = replace(config, entries=entries, **fields)
    _check_arena(made)
    return made


def _check_arena(config: SessionConfig) -> None:
    """Refuse an arena that is not used, and the use of one that nobody makes."""
    uses = config.entries.get(ENVIRONMENT_ALLOCATORS)
    if not config.sets_arena:
        if uses == "1":
            raise UsageError(
                f"{ENVIRONMENT_ALLOCATORS}=1 has no effect without a setting of the arena, the "
                "memory that ONNX Runtime keeps for the CPU",
                place=_PLACE,
                hint=f"Add one, e.g. {_PLACE}=arena_extend_strategy=kSameAsRequested",
            )
        return
    if config.enable_cpu_mem_arena is False or uses == "0":
        without = f"{ENVIRONMENT_ALLOCATORS}=0" if uses == "0" else "enable_cpu_mem_arena=0"
        settings = _arena_settings(config)
        raise UsageError(
            f"{without} switches off the memory arena that {' and '.join(settings)} "
            f"{'sets' if len(settings) == 1 else 'set'}",
            place=_PLACE,
            hint=f"Leave out either {without} or "
            + ("the other option" if len(settings) == 1 else "the other two"),
        )
    chunk = config.arena_initial_chunk_bytes
    if chunk is not None and chunk > _LARGEST_CHUNK:
        raise UsageError(
            f"arena_initial_chunk_bytes={chunk} is above {_LARGEST_CHUNK}, the most that ONNX "
            "Runtime takes",
            place=_PLACE,
            hint=f"Write at most arena_initial_chunk_bytes={_LARGEST_CHUNK}",
        )


def _arena_settings(config: SessionConfig) -> list[str]:
    """The settings of the arena that a configuration has, as they are written."""
    settings = {
        "arena_extend_strategy": config.arena_extend_strategy,
        "arena_initial_chunk_bytes": config.arena_initial_chunk_bytes,
    }
    return [f"{name}={value}" for name, value in settings.items() if value]


def with_spinning(config: SessionConfig, spinning: str) -> SessionConfig:
    """Return ``config`` with the session's waiting threads spinning or not.

    Args:
        config: What else is set.
        spinning: ``on`` (ONNX Runtime's default: quicker, at the price of CPU time) or ``off``.
    """
    value = "1" if spinning == "on" else "0"
    return replace(config, entries={**config.entries, SPINNING: value})


def with_compiling(config: SessionConfig, ahead: str) -> SessionConfig:
    """Return ``config`` in which no provider compiles a file that was compiled ahead.

    Args:
        config: What else is set.
        ahead: ``on`` for a file that was compiled ahead, ``off`` for a plain one.
    """
    if ahead == "off":
        return config
    return replace(config, entries={**config.entries, NO_COMPILE: "1"})


def _documented(key: str, value: str) -> str:
    """The value of an entry; one that ONNX Runtime would take for the default is refused."""
    values = DOCUMENTED.get(key, ())
    if values and value not in values:
        known = " or ".join(f"{key}={word}" for word in values)
        raise UsageError(
            f"ONNX Runtime does not accept {key}={value!r}",
            place=_PLACE,
            hint=f"Write {known}",
        )
    return value


def _positive(key: str, value: str) -> int:
    if not value.isdigit() or int(value) < 1:
        raise UsageError(
            f"{key}={value!r} is not a positive whole number",
            place=_PLACE,
            hint=f"Write e.g. {key}={_EXAMPLES[key]}. For the default, leave {key} out",
        )
    return int(value)


def _boolean(key: str, value: str) -> bool:
    try:
        return _BOOLS[value.lower()]
    except KeyError:
        raise UsageError(
            f"{key}={value!r} is neither true nor false",
            place=_PLACE,
            hint=f"Write {key}=1 or {key}=0",
        ) from None


def _choice(key: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(
            f"{value!r} is not a value of {key}", place=_PLACE, hint=did_you_mean(value, known)
        )
    return value
