"""What is read from the text of an option."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText, read_label_file


@pytest.mark.parametrize(("written", "meant"), [("label.txt", "labels.txt"), ("other", "")])
def test_a_mistyped_file_of_labels_is_answered_with_the_one_that_lies_there(
    written: str, meant: str, tmp_path: Path
) -> None:
    (tmp_path / "labels.txt").touch()
    text = OptionText(texts=(written,), place="--ort-labels", is_typed=True, base=tmp_path)
    with pytest.raises(UsageError) as caught:
        read_label_file(text)
    assert (str(tmp_path / "labels.txt") in caught.value.hint) is bool(meant)
    assert "CSV" not in caught.value.hint  # labels of a text file are one per line
