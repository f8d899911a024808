"""What tests print of a case: numbers with their names, and what is not there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.plugin.measured import shown_numbers

from .conftest import QUICK

ModelFile = Callable[..., Path]


def test_numbers_stand_in_lines_and_missing_ones_are_named() -> None:
    numbers = {
        "p50": Quantity(value=0.012, unit="s", low=0.011, high=0.013),
        "perplexity": Quantity(value=3.0, unit="1"),
        "p99": None,
    }
    about, *lines, missing = shown_numbers("net", numbers).splitlines()
    assert about == "net"
    assert [tuple(line.split(None, 1)) for line in lines] == [
        (name, str(number)) for name, number in numbers.items() if number is not None
    ]
    assert missing.endswith(" p99")
    assert shown_numbers("net", {}) == "net"


def test_printing_a_view_measures_and_showing_it_does_not(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx")
        def test_mine(ortbench):
            views = [ortbench.latency(), ortbench.generation(), ortbench.memory()]
            print("before:", repr(ortbench), repr(views[0]))
            for view in views:
                print("printed:", view)
        """
    )
    result = pytester.runpytest("-s", *QUICK)
    result.assert_outcomes(passed=1)
    text = result.stdout.str()
    before, printed = text.split("printed:", 1)
    assert not re.search(r"p50 +\d", before)
    assert re.search(r"mlp/native/cpu/b1: measured\n  p50 +\d", printed)
    assert re.search(r"peak_rss +\d+\.?\d* [kM]?B", printed)
    assert re.search(r": ttft, .*perplexity", printed)
    assert "object at 0x" not in text
