"""Options are read before anything is collected, wherever they stand."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("where", ["addopts", "PYTEST_ADDOPTS"])
def test_a_wrong_value_in_added_options_is_one_message_before_anything_is_collected(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    # Read as late as the first test, it would be a traceback of each module.
    if where == "addopts":
        pytester.makeini("[pytest]\naddopts = --ort-time=fast")
    else:
        monkeypatch.setenv(where, "--ort-time=fast")
    pytester.makepyfile("raise RuntimeError('collected')")
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: --ort-time: 'fast' is not a number with a unit. Write e.g. '1 s'"
    ]
    assert "collected" not in result.stdout.str()
