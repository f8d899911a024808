"""Files that lie beside a model: read, or refused with the user's path."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.models.metadata import configuration_of


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        configuration_of(tmp_path / "m.onnx", "config.json")
    assert str(tmp_path / "config.json") in caught.value.message


def test_no_file_and_no_object_say_nothing(tmp_path: Path) -> None:
    assert configuration_of(tmp_path / "m.onnx", "config.json") == {}
    (tmp_path / "config.json").write_text("[1]")
    assert configuration_of(tmp_path / "m.onnx", "config.json") == {}
