"""Real inputs in archives that can't be read: one message that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.damaged_archives import DAMAGES, damaged
from tests.models.graphs import read, relu


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_archive_is_an_error_of_the_option(tmp_path: Path, damage: str) -> None:
    path = damaged(tmp_path / "photos.npz", damage, x=np.zeros((2, 4), np.float32))
    found = read(relu(), tmp_path)
    with pytest.raises(UsageError) as caught:
        resolve_inputs(found, batch=2, dims={}, inputs_path=path)
    text = str(caught.value)
    assert text.startswith(f"--ort-inputs: {str(path)!r} ")
    assert DAMAGES[damage] in text
