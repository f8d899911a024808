"""Colour and shape of a case: by provider and precision, the same in every figure of a run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style


class Identity:
    """Colours by provider, shapes by precision, in the order in which the run names them.

    Providers beyond the palette share one grey and precisions beyond the shapes share the last
    one: the row's label still tells them apart.
    """

    def __init__(self, shown: Sequence[Entry]) -> None:
        cases = [entry.result.case for entry in shown]
        self._providers = list(dict.fromkeys(case.provider.label for case in cases))
        self._precisions = list(dict.fromkeys(case.variant.precision for case in cases))

    def colour(self, entry: Entry) -> str:
        """Return the colour of the case's provider."""
        return self._colour(entry.result.case.provider.label)

    def marker(self, entry: Entry) -> str:
        """Return the shape of the case's precision."""
        return self._marker(entry.result.case.variant.precision)

    def _colour(self, provider: str) -> str:
        index = self._providers.index(provider)
        return style.COLOURS[index] if index < len(style.COLOURS) else style.OTHER

    def _marker(self, precision: str) -> str:
        index = self._precisions.index(precision)
        return style.MARKERS[min(index, len(style.MARKERS) - 1)]

    def handles(self, drawn: Sequence[Entry]) -> list[Line2D]:
        """Return legend entries for the providers and precisions among ``drawn`` cases."""
        used = [entry.result.case for entry in drawn]
        providers = [p for p in self._providers if p in {case.provider.label for case in used}]
        precisions = [p for p in self._precisions if p in {c.variant.precision for c in used}]
        found: list[Line2D] = []
        if len(providers) > 1:
            found += [
                style.mark(style.drawable(name, 24), self._colour(name), "o")
                for name in providers
                if self._providers.index(name) < len(style.COLOURS)
            ]
            if len(self._providers) > len(style.COLOURS):
                found.append(style.mark("other providers", style.OTHER, "o"))
        if len(precisions) > 1:
            found += [
                style.mark(style.drawable(name, 24), style.FAINT, self._marker(name))
                for name in precisions
            ]
        if any(entry.barred for entry in drawn):
            found.append(style.mark("not ranked (flags)", style.FAINT, "o", filled=False))
        return found
