"""Compile an ONNX file with IREE: the program of a process of its own, whose memory is not ours.

It is run as text, ``python -c``, with one argument: a JSON object of the fields that
:func:`compile_file` takes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def compile_file(
    *,
    model: str,
    sizes: dict[str, list[int]],
    imported: str,
    compiled: str,
    target: str,
    flags: list[str],
) -> None:
    """Import a model at fixed sizes, and compile it.

    Args:
        model: The ONNX file.
        sizes: Of every input.
        imported: Where the imported module is written.
        compiled: Where the compiled one is.
        target: Backend of the compiler, ``llvm-cpu``.
        flags: Further flags of ``iree-compile``.

    Raises:
        Exception: what importer and compiler raise.
    """
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context
    from iree.compiler.tools import compile_file as compile_with_iree

    info = onnx_importer.ModelInfo(at_sizes(model, sizes))
    module = info.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    module.verify()
    with Path(imported).open("wb") as file:
        module.write_bytecode(file)
    compile_with_iree(
        imported,
        input_type="onnx",
        target_backends=[target],
        output_file=compiled,
        extra_args=flags,
    )


def at_sizes(path: str, sizes: dict[str, list[int]]) -> Any:
    """Return a model with the sizes of its inputs fixed, and those of all else inferred anew.

    Args:
        path: The ONNX file.
        sizes: Of every input.
    """
    import onnx

    model = onnx.load(path)
    for value in model.graph.input:
        if value.name in sizes:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in sizes[value.name]:
                shape.dim.add().dim_value = size
    for value in model.graph.output:
        # What is known of a number of sizes stays: without it the importer takes one for none.
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    del model.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


if __name__ == "__main__":
    compile_file(**json.loads(sys.argv[1]))
