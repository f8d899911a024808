"""Whether what the user names can be written to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.store.writable import require_writable_file

pytestmark = pytest.mark.unit


def test_a_folder_that_is_a_link_to_nothing_takes_no_file(tmp_path: Path) -> None:
    link = tmp_path / "bench"
    link.symlink_to(tmp_path / "drive")
    with pytest.raises(UsageError) as refused:
        require_writable_file(link / "run.json", "--ort-json")
    assert str(tmp_path / "drive") in refused.value.message


def test_a_file_may_be_a_link_to_one_that_is_still_to_be_made(tmp_path: Path) -> None:
    link = tmp_path / "run.json"
    link.symlink_to(tmp_path / "latest.json")
    require_writable_file(link, "--ort-json")
