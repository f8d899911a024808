"""Revisions of models: what is said where Git can't tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.models.revisions import revision


@pytest.mark.live
def test_a_machine_without_git_is_not_taken_for_a_folder_without_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as refused:
        revision("main", tmp_path)
    assert isinstance(refused.value.__cause__, FileNotFoundError)
