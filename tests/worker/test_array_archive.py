"""Archives of arrays, whatever the arrays are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.worker.array_archive import write_arrays


@pytest.mark.parametrize("name", ["file", "args", "kwds", "a/b", "x:0", "arr_0", "é"])
def test_any_name_comes_back(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, {name: [1.5, 2.5], "other": np.arange(3)})
    with np.load(path, allow_pickle=False) as stored:
        assert set(stored.files) == {name, "other"}
        assert stored[name].tolist() == [1.5, 2.5]


def test_texts_are_no_pickles_and_other_objects_are_left_to_readers(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, {"text": np.array(["a", "bc"], object), "mixed": np.array([1, "a"], object)})
    with np.load(path, allow_pickle=False) as stored:
        assert stored["text"].tolist() == ["a", "bc"]
        with pytest.raises(ValueError, match="allow_pickle"):
            stored["mixed"]
