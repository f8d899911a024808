"""Weights of four bits: matrix products become MatMulNBits, all else stays in float."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.convert.graph import Draft, count_types, load_typed, save
from pytest_ortbench.core.recipe import Recipe


def quantise(source: Path, target: Path, recipe: Recipe) -> Draft:
    """Quantise the constant weights of matrix products, block by block.

    Args:
        source: A model in float32.
        target: Where the result goes.
        recipe: With base ``int4``.

    Raises:
        ImportError: if the tool's own dependencies are not installed.
    """
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    model, notes = load_typed(source)
    before = count_types(model)
    # Four bits is what it does by default; 1.22 and 1.23 have no parameter for it.
    quantizer = MatMulNBitsQuantizer(
        model,
        block_size=recipe.block_size,
        is_symmetric=recipe.symmetric,
        accuracy_level=recipe.accuracy_level or None,
        nodes_to_exclude=list(recipe.nodes_to_exclude),
    )
    quantizer.process()
    save(quantizer.model.model, target)
    return Draft(before=before, notes=notes)
