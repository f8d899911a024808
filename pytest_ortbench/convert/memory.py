"""Conversions stay within the memory that is free, or end with a reason instead of being killed."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_ortbench.convert.failure import more_memory, unconverted
from pytest_ortbench.core import free_memory
from pytest_ortbench.core.recipe import Conversion

#: Memory that a conversion takes at its peak, as a multiple of the model's size. *Seen* on one
#: weight of 0.54 GB: pre-processing 3.0, rounding to half precision 2.6, four bits 2.6, eight
#: bits 3.6.
_TIMES = 4.0
#: Smaller models are converted anyway.
_SMALL = 1 << 28

#: Share of the free memory that a conversion may take.
_SHARE = 0.95
#: What it may take anyway: a cap on addresses also holds for those that nothing lies behind (stacks
#: of threads, arenas of the allocator).
_LEAST = 1 << 31


def limit(conversion: Conversion) -> None:
    """Refuse a conversion that can't fit, and let one that grows beyond what is free fail alone.

    Raises:
        WorkerError: if the model needs more memory than there is.
    """
    free = free_memory.available()
    if free is None:
        return
    size = conversion.size_bytes * (2 if conversion.widened else 1)
    needed = int(_TIMES * size)
    if size > _SMALL and needed > free:
        raise unconverted(
            f"to convert {conversion.size_bytes / 1e9:.1f} GB to {conversion.recipe.base} takes "
            f"about {needed / 1e9:.0f} GB of memory, and "
            f"{f'{free / 1e9:.1f}'.removesuffix('.0')} GB are free here",
            more_memory(conversion),
        )
    _cap(free)


def _cap(free: int) -> None:
    """Let allocations beyond what is free fail in this process, which converts and nothing else.

    *Seen*: a histogram whose first values are tiny grows by as many bins as later ones are larger.
    """
    if sys.platform != "linux":
        return
    import resource

    try:
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return
    wanted = mapped * resource.getpagesize() + max(_LEAST, int(_SHARE * free))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
