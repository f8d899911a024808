"""Archives of arrays in numpy's format, whatever the arrays are called.

``numpy.savez`` takes names as keywords, and has one of its own: ``file``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


def write_arrays(place: Path | IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays as an archive that ``numpy.load`` reads; texts become fixed in width.

    Args:
        place: The file to write.
        arrays: Arrays, or what makes one, by name.
    """
    import numpy as np

    with zipfile.ZipFile(place, "w") as archive:
        for name, value in arrays.items():
            array = np.asarray(value)
            if array.dtype == object and all(isinstance(part, str) for part in array.flat):
                array = array.astype(str)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array)
