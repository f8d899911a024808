"""What the ``ortbench`` fixture gives: a case of the matrix, or the models that a test makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ortbench.plugin.measured import AtEnd, Measured, fail

if TYPE_CHECKING:
    import os

    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.core.outcome import Failure
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.made_models import MadeModels, Serialised


class OrtBench(Measured):
    """One case of the matrix; measuring is lazy and happens once, whatever asks for it.

    A test that makes its model has none, and calls :meth:`measure`. Example::

        @pytest.mark.ortbench(models="m.onnx", batch_sizes=[1, 8], limits=["latency_p90 <= 30 ms"])
        def test_latency(ortbench):
            assert ortbench.latency().p50 < 0.010  # seconds
    """

    def __init__(
        self, bench: Bench, entries: Sequence[Planned], limits: Sequence[Limit], item: pytest.Item
    ) -> None:
        super().__init__(bench, entries, limits)
        self._item = item
        self._made: MadeModels | None = None
        self._is_told = False

    def measure(
        self,
        model: str | os.PathLike[str] | bytes | bytearray | memoryview | Serialised,
        *,
        name: str = "",
        inputs: str | os.PathLike[str] | Mapping[str, object] | None = None,
        check: bool = True,
        **keywords: Any,
    ) -> Measured:
        """Measure a model that the test made, under the name of the test.

        Args:
            model: Path of a file, its bytes, or a ``ModelProto`` of onnx.
            name: What tells it from other models of the same test.
            inputs: Real inputs as behind ``--ort-inputs``, or arrays by the names of inputs, and
                of outputs that are expected.
            check: Whether a case that gives no number fails or skips the test at once.
            keywords: As of the ``ortbench`` marker: axes, ``limits``, ``gate``.

        Returns:
            Its case; where options, marker or keywords make it several, all of them.
        """
        if self._made is None:
            from pytest_ortbench.plugin.made_models import MadeModels

            self._made = MadeModels(self._bench, self._item)
        return self._made.measure(model, name=name, inputs=inputs, check=check, keywords=keywords)

    @property
    def planned(self) -> tuple[Planned, ...]:
        """All cases of the test: that of the matrix, and those of models that it made."""
        return (*self._entries, *(() if self._made is None else self._made.entries))

    def problems(self, item: pytest.Item, at_end: AtEnd) -> list[str]:
        """Check the case of the matrix; tell what is wrong with that and with models made."""
        problems = super().problems(item, at_end) if self._entries else []
        if not self.planned:
            problems.append("nothing was measured: the test did not call ortbench.measure(…)")
        return problems

    def finish(self, item: pytest.Item, at_end: AtEnd) -> None:
        """As for any case; what is wrong with models that were made is told as well."""
        problems = self.problems(item, at_end)
        name = self.name if self._entries else item.nodeid
        made = [] if self._made is None else self._made.problems
        fail("", [*(f"{name}: {text}" for text in problems), *made])

    def skipped(self, item: pytest.Item, at_end: AtEnd) -> None:
        """As for any case; a skip hides nothing that is wrong with models that were made."""
        if self._entries and not self._is_told:
            super().skipped(item, at_end)
        fail("", [] if self._made is None else self._made.problems)

    def _told_in(self, failure: Failure) -> str:
        """Return the test that failed already for the same file or case; empty if none did."""
        told_in = self._bench.told_failures.told_in(self._planned, failure, self._item.nodeid)
        self._is_told = bool(told_in)
        return told_in
