"""Nodes, parameters and multiply-accumulates of any model file, a converted one among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_ortbench.core.errors import first_line
from pytest_ortbench.core.extent import Extent
from pytest_ortbench.models.arithmetic import count_proto
from pytest_ortbench.models.inspection import all_nodes, parameter_count
from pytest_ortbench.models.ort_file import is_ort_file

#: A larger file is not read for the sake of its counts: the process that measures nothing should
#: stay small. External data is never read, so large models have small files.
_LARGEST_BYTES = 1 << 29


def extent_of(path: Path, sizes: Mapping[str, Sequence[int]]) -> Extent:
    """Count a file.

    Args:
        path: The file. External data is not read.
        sizes: Shape of each input, by name.

    Returns:
        The counts; with a reason where something could not be counted. It never raises.
    """
    import onnx

    if is_ort_file(path):
        return Extent(reason="nothing can be counted in ONNX Runtime's own format")
    try:
        size = path.stat().st_size
        if size > _LARGEST_BYTES:
            return Extent(reason=f"the file of {size / 1e9:.1f} GB is not read to be counted")
        proto = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # noqa: BLE001 - protobuf raises errors of its own
        return Extent(reason=f"the file can't be read: {first_line(error)}")
    nodes, parameters = sum(1 for _ in all_nodes(proto)), parameter_count(proto)
    work = count_proto(proto, sizes)
    return Extent(
        nodes=nodes,
        parameters=parameters,
        macs=work.macs,
        uncounted=sum(work.uncounted.values()),
        reason=work.reason,
    )
