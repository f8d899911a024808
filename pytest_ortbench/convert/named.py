"""What a recipe names must exist: a typing error would otherwise change nothing and say nothing."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.convert.graph import all_graphs
from pytest_ortbench.core.errors import WorkerError, did_you_mean
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import Recipe


def check(recipe: Recipe, source: Path) -> None:
    """Refuse operator types that there are none of, and nodes that the model has none of.

    An operator type that exists and that this model lacks is fine: one recipe serves many models.

    Args:
        recipe: Names operator types to quantise or to leave, and nodes to exclude.
        source: The model.

    Raises:
        WorkerError: with the setting and the nearest name.
    """
    import onnx

    named = {"op_types": recipe.op_types, "block_list": recipe.block_list or ()}
    if not any(named.values()) and not (recipe.base == "int4" and recipe.nodes_to_exclude):
        return
    model = onnx.load(str(source), load_external_data=False)
    nodes = [node for graph in all_graphs(model.graph) for node in graph.node]
    used = {node.op_type for node in nodes}
    known = used | _operators() if any(named.values()) else used
    for key, names in named.items():
        for name in names:
            if name not in known:
                near = did_you_mean(name, known)
                hint = near if near.startswith("Did") else did_you_mean(name, used)
                raise _refused(
                    f"the recipe's {key} names {name!r}, which is no operator type", hint
                )
    if recipe.base == "int4":  # the other tools' own modules look at nodes, before they fuse any
        by_name = {node.name for node in nodes if node.name}
        for name in recipe.nodes_to_exclude:
            if name not in by_name:
                hint = did_you_mean(name, by_name)
                raise _refused(
                    f"the recipe excludes the node {name!r}, and the model has none", hint
                )


def _refused(message: str, hint: str) -> WorkerError:
    return WorkerError(Failure(kind="unsupported", phase="convert", message=message, hint=hint))


def _operators() -> set[str]:
    """Every operator type that ONNX or ONNX Runtime defines."""
    import onnx

    found = {schema.name for schema in onnx.defs.get_all_schemas()}
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as native

        found |= {schema.name for schema in native.get_all_operator_schema()}
    except (ImportError, AttributeError):
        # Minimal builds leave it out; the converter's own list has the usual ones.
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

        found |= set(DEFAULT_OP_BLOCK_LIST)
    return found
