"""Errors of ours, held to their fields: what tests of behaviour ask of a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_ortbench.core.errors import OrtbenchError


@contextmanager
def refused(
    error: type[OrtbenchError], *values: str, place: str = "", hint: str = ""
) -> Iterator[pytest.ExceptionInfo[OrtbenchError]]:
    """Expect exactly this kind of error, with values in its message.

    Args:
        error: The kind of error, no subclass of it.
        values: Texts that its message names: what was written, a size, a file.
        place: Where it says that the value stands; empty: anywhere.
        hint: What its hint names; empty: anything.
    """
    with pytest.raises(error) as raised:
        yield raised
    assert type(raised.value) is error
    assert [value for value in values if value not in raised.value.message] == []
    assert raised.value.place == (place or raised.value.place)
    assert hint in raised.value.hint
