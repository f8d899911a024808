"""Paths that begin with a home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.home_folder import in_home


def test_a_home_folder_is_put_in_and_that_of_nobody_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("USERPROFILE", "/home/somebody")
    assert in_home("~/m.onnx") == Path("/home/somebody/m.onnx")
    assert in_home(Path("a/~/m.onnx")) == Path("a/~/m.onnx")
    assert in_home("~no-such-user/m.onnx") == Path("~no-such-user/m.onnx")
