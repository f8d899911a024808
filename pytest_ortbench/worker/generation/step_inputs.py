"""What one step of a decoder is fed beside its cache: tokens, mask, positions, flags, constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.generation import Decoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from onnxruntime import InferenceSession

    Ids = npt.NDArray[np.integer[Any]]

FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}
_WHOLE = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


class StepInputs:
    """Makes the inputs of steps in the types and shapes that a session declares.

    Attributes:
        types: ONNX Runtime's spelling of the type of each input.

    Args:
        session: Of the decoder's file.
        decoder: What its inputs mean.
        batch: Number of sequences.
    """

    def __init__(self, session: InferenceSession, decoder: Decoder, *, batch: int) -> None:
        self.types = {info.name: info.type for info in session.get_inputs()}
        self._shapes = {info.name: info.shape for info in session.get_inputs()}
        self._decoder = decoder
        self._batch = batch

    def of(self, ids: Ids, *, before: int) -> dict[str, npt.NDArray[Any]]:
        """Return the inputs of a step, without the cache and what is heard.

        Args:
            ids: Tokens that it reads, ``[batch, tokens]``.
            before: Tokens of a sequence that stand in the cache.
        """
        import numpy as np

        decoder = self._decoder
        total = before + ids.shape[1]
        given: dict[str, npt.NDArray[Any]] = {decoder.ids: self._whole(decoder.ids, ids)}
        if decoder.mask:
            ones = np.ones((self._batch, total), dtype=np.int64)
            given[decoder.mask] = self._whole(decoder.mask, ones)
        if decoder.positions:
            row = np.arange(before, total, dtype=np.int64)
            rows = np.broadcast_to(row, (self._batch, len(row)))
            listed = len(self._shapes[decoder.positions]) == 1
            given[decoder.positions] = self._whole(decoder.positions, row if listed else rows)
        if decoder.cache_flag:
            is_used = (before > 0) != decoder.cache_flag_first
            given[decoder.cache_flag] = np.full(self._sized(decoder.cache_flag, 1), is_used)
        for name, number in decoder.constants.items():
            shape = self._sized(name, ids.shape[1])
            given[name] = self._whole(name, np.full(shape, number, dtype=np.int64))
        return given

    def typed(self, name: str, value: object) -> npt.NDArray[Any]:
        """Return values in the type that the session takes: a reference may take another one."""
        import numpy as np

        array = np.asarray(value)
        kind = {**FLOATS, **_WHOLE}.get(self.types[name])
        return array if kind is None else array.astype(kind)

    def _sized(self, name: str, tokens: int) -> list[int]:
        """Shape of an input; open axes are the batch and the tokens."""
        open_sizes = (self._batch, tokens)
        return [
            size if isinstance(size, int) else open_sizes[min(axis, 1)]
            for axis, size in enumerate(self._shapes[name])
        ]

    def _whole(self, name: str, value: Ids) -> npt.NDArray[Any]:
        import numpy as np

        return np.ascontiguousarray(value, dtype=_WHOLE[self.types[name]])
