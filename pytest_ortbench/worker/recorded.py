"""Outputs that somebody recorded beside the inputs: ``output_0.pb``, … of ONNX test data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.sample_file import Sample, SampleWriter
from pytest_ortbench.worker.tensor_proto import read_tensor


def recorded_outputs(
    inputs: Sequence[InputSpec], outputs: Sequence[TensorInfo]
) -> tuple[Path, ...]:
    """Return the files of all outputs, where every input comes from one such folder; else none.

    A folder that holds some of the outputs only is no reference.
    """
    folders = {Path(spec.path).parent for spec in inputs if spec.path.endswith(".pb")}
    if len(folders) != 1 or not all(spec.path for spec in inputs):
        return ()
    folder = folders.pop()
    files = tuple(folder / f"output_{number}.pb" for number in range(len(outputs)))
    tensors = all(info.type.startswith("tensor(") for info in outputs)
    return files if files and tensors and all(file.is_file() for file in files) else ()


def write_recorded(
    path: Path,
    files: Sequence[Path],
    specs: Sequence[InputSpec],
    names: Sequence[str],
    *,
    seed: int,
) -> None:
    """Store the inputs with the recorded outputs, as the reference of one input set.

    Args:
        path: The file to make; it appears when it is complete.
        files: From :func:`recorded_outputs`.
        specs: The inputs.
        names: Names of the outputs in order.
        seed: Of inputs that no file holds.

    Raises:
        WorkerError: if a file can't be read.
    """
    with SampleWriter(path, f"outputs recorded in {files[0].parent.name}", tuple(names)) as writer:
        feeds = make_feeds(specs, seed=seed)
        outputs: list[object] = [read_tensor(file) for file in files]
        writer.add(Sample(magnitude=1.0, feeds=feeds, outputs=outputs))
