"""What tests read of a load whose service says what nobody should print as it is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.passes.load.facts import Load, LoadTest
from pytest_ortbench.passes.load.fixture import LoadView
from pytest_ortbench.passes.load.numbers.spec import parse_load

FOREIGN = "\x1b[31mred\x07 \u202e \ud800"


def view(load: Load) -> LoadView:
    ortbench: Any = SimpleNamespace(name="m/native/endpoint/b1")
    return LoadView(ortbench, load)


def load_of(**changes: Any) -> Load:
    return Load(spec=parse_load("server:50:20ms", place=""), **changes)


def test_foreign_texts_of_a_load_are_spelt_out() -> None:
    untested = view(load_of(reason=FOREIGN))
    invalid = view(load_of(tests=(replace(LoadTest(), valid=False, reasons=(FOREIGN,)),)))
    with pytest.raises(pytest.fail.Exception) as caught:
        _ = untested.valid
    for text in (str(caught.value), *(text for of in (untested, invalid)
                                      for text in (of.reason, of.reasons, repr(of)))):  # fmt: skip
        assert text.replace("\n", "").isprintable()
        assert "red" in text
