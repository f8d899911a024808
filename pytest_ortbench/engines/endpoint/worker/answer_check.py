"""Whether answers that come under load are those of the model, by their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.units import significant
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import Reply
from pytest_ortbench.engines.seam import RightAnswer
from pytest_ortbench.worker.agreement import difference, kind_of, worst_figures
from pytest_ortbench.worker.outputs import Leaf, flatten, nonfinite_in


class AnswerCheck(Protocol):
    """Looks at answers, the first one before the load."""

    #: A key of :data:`~pytest_ortbench.core.exchange.COMPARED_WITH`, once there was a first one.
    standard: str

    def take(self, reply: Reply) -> None:
        """Look at one.

        Raises:
            ExchangeError: if it is none of the model.
        """


class UncheckedTexts:
    """Takes answers as they are: their numbers of tokens were looked at, their texts can't be."""

    standard = ""

    def take(self, reply: Reply) -> None:
        """Take it as it is."""
        del reply


class ValueCheck:
    """Compares the values of answers with those of the reference.

    Where the first answer, before the load, misses the floor of the precision against the
    reference, which the check of answers tells of the row, answers are held to that first one: a
    load can't be told to have spoilt what was so before.

    Args:
        outputs_of: Reads the outputs of an answer, in the order of their names.
        names: Names of the outputs.
        right: What they are compared with; ``None`` compares none.
    """

    def __init__(
        self,
        outputs_of: Callable[[Reply], Sequence[Any]],
        names: Sequence[str],
        right: RightAnswer | None,
    ) -> None:
        self._outputs_of, self._names = outputs_of, tuple(names)
        self._floor = None if right is None else right.floor
        outputs = None if right is None else right.outputs
        self._right = None if outputs is None else self._leaves(outputs)
        self.standard = ""

    def take(self, reply: Reply) -> None:
        """Compare one.

        Raises:
            ExchangeError: if it is none of the model, or has other values than it should.
        """
        outputs = self._outputs_of(reply)
        _require_finite(outputs)
        if self._floor is None:
            return
        leaves = self._leaves(outputs)
        if self.standard:
            why = self._why_wrong(leaves, self._floor)
            if why:
                raise ExchangeError("wrong", why)
            return
        keeps = self._right is not None and not self._why_wrong(leaves, self._floor)
        self.standard = "reference" if keeps else "first"
        self._right = self._right if keeps else leaves

    def _leaves(self, outputs: Sequence[Any]) -> dict[str, Leaf]:
        return {leaf.label: leaf for leaf in flatten(outputs, self._names)}

    def _why_wrong(self, leaves: dict[str, Leaf], floor: Floor) -> str:
        """Say which output is not what it should be; empty if all are."""
        for label, right in (self._right or {}).items():
            why = _why_another(right, leaves.get(label), floor)
            if why:
                return f"the output {label!r} has other values than it should: {why}"
        return ""


def _why_another(right: Leaf, got: Leaf | None, floor: Floor) -> str:
    kind = kind_of(right)
    found = difference(kind, right, got)
    if found.exact:
        return ""
    if found.mismatch:
        return found.mismatch
    figures = worst_figures(right.label, kind, [found])
    if figures.sqnr_db is not None:
        if figures.sqnr_db >= floor.sqnr_db:
            return ""
        return f"SQNR {significant(figures.sqnr_db)} dB, below {floor.sqnr_db:g} dB"
    if figures.agree is None or not figures.rows:
        return "they differ, and no figure says by how much"
    is_step = right.values.dtype.itemsize == 1 and (figures.max_abs or 0.0) <= 1
    if is_step or figures.agree >= floor.agreement * figures.rows:
        return ""
    return f"{figures.agree} of {figures.rows} agree"


def _require_finite(outputs: Sequence[Any]) -> None:
    count = nonfinite_in(list(outputs))
    if count:
        raise ExchangeError("invalid", f"the answer has {count} values that are NaN or infinite")
