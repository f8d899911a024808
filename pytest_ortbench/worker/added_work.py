"""Work of a known size, done after each inference inside the timed region.

The gate tests itself with it: a model that is slower by so much. It is real work, not a factor on
the numbers, so everything that disturbs a measurement disturbs this one, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Run = Callable[[None, Mapping[str, object]], object]

#: The sine of so many numbers at a time stays in the innermost cache, so that the model's own data
#: stay where they are.
_CHUNK = 512


def with_added_work(run: Run, numbers: int) -> Run:
    """Return ``run`` followed by the sine of so many numbers; ``run`` itself for none."""
    if numbers <= 0:
        return run
    import numpy  # in the measured interpreter, and only for the self-test

    chunk = numpy.linspace(0.1, 1.5, _CHUNK)
    out = numpy.empty_like(chunk)
    whole, rest = divmod(numbers, _CHUNK)
    last, last_out = chunk[:rest], out[:rest]
    sine = numpy.sin

    def run_and_work(names: None, feeds: Mapping[str, object]) -> object:
        outputs = run(names, feeds)
        for _ in range(whole):
            sine(chunk, out=out)
        sine(last, out=last_out)
        return outputs

    return run_and_work
