"""The work of each yardstick: seeded, and the same wherever it runs.

Whoever changes what is computed changes the definition, whose digest tells old times from new ones.
A unit takes 0.3 to 1 ms on one CPU of a server of today.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

#: Does one part of a unit of work, whose result is thrown away.
Unit = Callable[[], object]

_SEED = 20_240_229


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct:
    """A product of two square matrices of float32, by the library behind numpy on one thread.

    Attributes:
        operation: Names it in its digest.
        side: Rows and columns: the three matrices fit into a cache of the second level, and a
            product takes much longer than its call.
    """

    operation: str = "product of float32 matrices"
    side: int = 256

    def unit(self) -> Unit:
        """Return a unit with matrices of its own."""
        import numpy as np

        draw = np.random.default_rng(_SEED)
        shape = (self.side, self.side)
        left, right, product = (draw.standard_normal(shape, dtype=np.float32) for _ in range(3))
        return lambda: np.matmul(left, right, out=product)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPass:
    """A piece of a large array of float32 is multiplied by one, each unit the next piece.

    Attributes:
        operation: Names it in its digest.
        whole_bytes: Size of the array, which few caches hold.
        piece_bytes: Size of a piece.
    """

    operation: str = "multiplication in place of pieces of a float32 array"
    whole_bytes: int = 128 * 2**20
    piece_bytes: int = 8 * 2**20

    def unit(self) -> Unit:
        """Return a unit with an array of its own."""
        import numpy as np

        whole = np.ones(self.whole_bytes // 4, dtype=np.float32)
        pieces = itertools.cycle(np.split(whole, self.whole_bytes // self.piece_bytes))
        one = np.float32(1)

        def unit() -> object:
            piece = next(pieces)
            return np.multiply(piece, one, out=piece)

        return unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductAndPass:
    """A product of matrices, then a small piece of memory, each timed: models do both.

    Attributes:
        operation: Names it in its digest.
        product: The former.
        memory: The latter.
    """

    operation: str = "both parts in turn, each timed"
    product: MatrixProduct = MatrixProduct()
    memory: MemoryPass = MemoryPass(piece_bytes=2 * 2**20)


Workload = MatrixProduct | MemoryPass | ProductAndPass

#: By the name of the yardstick.
WORKLOADS: dict[str, Workload] = {
    "serial": MatrixProduct(),
    "mixed": ProductAndPass(),
    "parallel": ProductAndPass(),
    "memory": MemoryPass(),
}


def parts_of_unit(workload: Workload) -> tuple[Unit, ...]:
    """Return what a unit does one after the other, with data of its own: one part or two."""
    if isinstance(workload, ProductAndPass):
        return workload.product.unit(), workload.memory.unit()
    return (workload.unit(),)


def digest_of_work(workload: Workload) -> str:
    """Return what two definitions share exactly if they are the same work."""
    definition = json.dumps({**asdict(workload), "seed": _SEED}, sort_keys=True)
    return hashlib.sha256(definition.encode()).hexdigest()[:12]
