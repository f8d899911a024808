"""Colour and shape of a case: by provider and precision, the same in every figure of a run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style


class Identity:
    """Colours by provider, shapes and dashes by precision, in the order in which the run names
    them. Where there is one provider only, its precisions have colours of their own, too.

    Providers beyond the palette share one grey and precisions beyond the shapes share the last
    one: the row's label still tells them apart.
    """

    def __init__(self, shown: Sequence[Entry]) -> None:
        cases = [entry.result.case for entry in shown]
        self._providers = list(dict.fromkeys(case.provider.described for case in cases))
        self._precisions = list(dict.fromkeys(case.variant.precision for case in cases))
        self._colourful = len(self._providers) == 1 and len(self._precisions) > 1

    def colour(self, entry: Entry) -> str:
        """Return the colour of the case's provider, or of its precision where all share one."""
        case = entry.result.case
        if self._colourful:
            return self._colour_of_precision(case.variant.precision)
        return self._colour(case.provider.described)

    def marker(self, entry: Entry) -> str:
        """Return the shape of the case's precision."""
        return self._marker(entry.result.case.variant.precision)

    def dash(self, entry: Entry) -> style.Dash:
        """Return the line style of the case's precision."""
        return self._dash(entry.result.case.variant.precision)

    def _colour_of_precision(self, precision: str) -> str:
        index = self._precisions.index(precision)
        return style.COLOURS[index] if index < len(style.COLOURS) else style.OTHER

    def _dash(self, precision: str) -> style.Dash:
        index = self._precisions.index(precision)
        return style.DASHES[min(index, len(style.DASHES) - 1)]

    def _colour(self, provider: str) -> str:
        index = self._providers.index(provider)
        return style.COLOURS[index] if index < len(style.COLOURS) else style.OTHER

    def _marker(self, precision: str) -> str:
        index = self._precisions.index(precision)
        return style.MARKERS[min(index, len(style.MARKERS) - 1)]

    def handles(self, drawn: Sequence[Entry], *, lines: bool = False) -> list[Line2D]:
        """Return legend entries for the providers and precisions among ``drawn`` cases.

        Args:
            drawn: The cases of the figure.
            lines: Whether lines join their marks.
        """
        used = [entry.result.case for entry in drawn]
        providers = [p for p in self._providers if p in {case.provider.described for case in used}]
        precisions = [p for p in self._precisions if p in {c.variant.precision for c in used}]
        marks: list[Line2D] = []
        if len(providers) > 1:
            marks += [
                style.mark(style.drawable(name, 24), self._colour(name), "o")
                for name in providers
                if self._providers.index(name) < len(style.COLOURS)
            ]
            if len(self._providers) > len(style.COLOURS):
                marks.append(style.mark("others", style.OTHER, "o"))
        if len(precisions) > 1:
            for name in precisions:
                colour = self._colour_of_precision(name) if self._colourful else style.FAINT
                marks.append(style.mark(style.drawable(name, 24), colour, self._marker(name)))
                if lines:
                    marks[-1].set(linestyle=self._dash(name), color=colour, linewidth=1.1)
                    marks[-1].set(markerfacecolor=colour, markeredgecolor=colour)
        if any(entry.barred for entry in drawn):
            marks.append(style.mark("not ranked (flags)", style.FAINT, "o", filled=False))
        return marks
