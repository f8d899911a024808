"""Text of TOML that users write."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.schema.toml_text import read_toml

pytestmark = pytest.mark.unit


def test_a_number_of_too_many_digits_is_told_with_its_line() -> None:
    with pytest.raises(UsageError) as refused:
        read_toml(f"a = 1\nmodel = {'9' * 5000}\n", place="x.toml")
    assert refused.value.place == "x.toml, line 2"
