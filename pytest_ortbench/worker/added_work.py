"""Work of a known size, done after each inference inside the timed region.

The gate tests itself with it: a model that is slower by so much. It is real work, not a factor on
the numbers, so everything that disturbs a measurement disturbs this one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

#: The sine of so many numbers at a time stays in the innermost cache, so that the model's own data
#: stay where they are.
_CHUNK = 512


def with_added_work(run: Callable[_Given, _Result], numbers: int) -> Callable[_Given, _Result]:
    """Return ``run`` followed by the sine of so many numbers; ``run`` itself for none."""
    if numbers <= 0:
        return run
    import numpy  # in the measured interpreter, and only for the self-test

    chunk = numpy.linspace(0.1, 1.5, _CHUNK)
    out = numpy.empty_like(chunk)
    whole, rest = divmod(numbers, _CHUNK)
    last, last_out = chunk[:rest], out[:rest]
    sine = numpy.sin

    def run_and_work(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        outputs = run(*given, **named)
        for _ in range(whole):
            sine(chunk, out=out)
        sine(last, out=last_out)
        return outputs

    return run_and_work
