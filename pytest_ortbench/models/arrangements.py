"""Rules for inputs whose values must stand in a certain order or beside each other.

A scatter without a reduction writes each place once: with repeated places its result depends on
the order of threads. Boundaries ascend; a matrix that is factorised must be positive definite.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.models.consumers import (
    attribute,
    axis_size,
    index_into_axis,
    index_into_leading_axes,
    input_shape,
    rule,
    rule_in_any_domain,
)
from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding
from pytest_ortbench.models.symbols import quote


@rule(("ScatterElements", 1), ("Scatter", 1))
def _scattered_along_axis(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    bound = index_into_axis(use, flow)
    if bound is None or _reduces(use) or not _reads_as_fed(use) or use.axes is None:
        return bound
    axis = attribute(use.node, "axis", 0)
    rank = len(use.axes)
    if not -rank <= axis < rank:
        return bound
    return replace(
        bound,
        kind="permutation",
        arrangement=(str(axis % rank),),
        why=f"{bound.why}, none twice",
    )


@rule(("ScatterND", 1))
def _scattered_points(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    bound = index_into_leading_axes(use, flow)
    data, depth = input_shape(use, flow, 0), axis_size(input_shape(use, flow, 1), -1)
    if bound is None or _reduces(use) or not _reads_as_fed(use):
        return bound
    if data is None or not isinstance(depth, int) or not 0 < depth <= len(data):
        return bound
    sizes = [size for size in data[:depth] if size is not None]
    if len(sizes) < depth:
        return bound
    box = tuple(quote(size) for size in sizes)
    why = f"ScatterND({use.node.input[0]} of {' × '.join(map(str, sizes))}), no place twice"
    return ConsumerFinding(kind="coordinates", arrangement=box, why=why)


def _reduces(use: Use) -> bool:
    for item in use.node.attribute:
        if item.name == "reduction":
            return item.s not in (b"", b"none")
    return False


def _reads_as_fed(use: Use) -> bool:
    """Whether the operator reads all elements of the input in their order, with their values."""
    return use.whole and (use.scale, use.offset) == (1.0, 0.0)


@rule_in_any_domain(("Cholesky", 0), ("CholeskyFactorization", 0))
def _factorised(_use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(kind="positive-definite", why="Cholesky of a positive definite matrix")


@rule_in_any_domain(("Bucketize", 1), ("SearchSorted", 0), ("Digitize", 1))
def _boundaries(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    low, high = (0.0, 9.0) if use.reads_integers else (-1.0, 1.0)
    return ConsumerFinding(
        kind="ascending", low=low, high=high, why=f"{use.op} boundaries, in order"
    )
