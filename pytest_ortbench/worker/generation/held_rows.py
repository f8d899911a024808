"""Outputs that are a cache: of a buffer, the rows that hold tokens.

An operator with a window leaves the other rows of its buffer as memory that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.worker.called import Declared, Session

if TYPE_CHECKING:
    import numpy.typing as npt


def rows_held(tokens: int, room: int, window: int) -> int:
    """Return how many rows of a buffer hold tokens, from the first row on.

    The rule is that of GroupQueryAttention: a full buffer is emptied down to its window at once.

    Args:
        tokens: Of a sequence that were read in all.
        room: Rows of the buffer.
        window: Tokens that are looked back over.
    """
    if tokens <= room:
        return tokens
    emptied = room - window + 1
    return tokens - emptied * -((room - tokens) // emptied)


def held(value: npt.NDArray[Any], tensor: CacheTensor, tokens: int) -> npt.NDArray[Any]:
    """Return the part of a cache that holds tokens: of a window, its last ones.

    Args:
        value: Of the whole buffer.
        tensor: What it holds.
        tokens: Of a sequence that were read in all.
    """
    rows = value.shape[tensor.length_axis]
    if not tensor.window:
        return value if rows == tokens else value.take(range(tokens), axis=tensor.length_axis)
    end = rows_held(tokens, rows, tensor.window)
    return value.take(range(end - min(tokens, tensor.window), end), axis=tensor.length_axis)


def held_outputs(
    outputs: Sequence[Any],
    names: Sequence[str],
    decoder: Decoder | None,
    feeds: Mapping[str, Any],
) -> list[Any]:
    """Return the outputs of a run, of windows the rows that hold tokens.

    Args:
        outputs: As the session gave them.
        names: What they are called.
        decoder: What they mean; ``None`` for another model.
        feeds: What the run was fed.
    """
    if decoder is None or not decoder.window:
        return list(outputs)
    by_name = {tensor.present: tensor for tensor in decoder.cache if tensor.window}
    counted = feeds[decoder.mask or decoder.ids]
    tokens = counted.shape[-1]
    return [
        held(output, by_name[name], tokens) if name in by_name else output
        for name, output in zip(names, outputs, strict=True)
    ]


class HeldRows:
    """A session whose outputs are cut to the rows that hold tokens.

    Args:
        session: What computes.
        decoder: What its outputs mean.
    """

    def __init__(self, session: Session, decoder: Decoder) -> None:
        self._session = session
        self._decoder = decoder

    def get_inputs(self) -> Sequence[Declared]:
        """Return the declared inputs."""
        return self._session.get_inputs()

    def get_outputs(self) -> Sequence[Declared]:
        """Return the declared outputs."""
        return self._session.get_outputs()

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], /
    ) -> Sequence[object]:
        """Run the session, and return its outputs cut.

        Args:
            output_names: Those that are wanted; ``None`` for all.
            input_feed: Values of the inputs.
        """
        names = output_names or [info.name for info in self.get_outputs()]
        outputs = self._session.run(output_names, input_feed)
        return held_outputs(outputs, names, self._decoder, input_feed)


def with_held_rows(session: Session, decoder: Decoder | None) -> Session:
    """Return a session whose outputs can be compared: cut where the model has windows.

    Args:
        session: What computes.
        decoder: What its outputs mean; ``None`` for another model.
    """
    return HeldRows(session, decoder) if decoder is not None and decoder.window else session
