"""A sentence of an answer that knows which of its words name the winner."""

from __future__ import annotations

from collections.abc import Callable


class Told(str):
    """A plain string to whoever prints it; a page takes it apart where it was put together.

    Searching the text for the winner's name would stress ``a`` inside ``cheapest`` for a machine
    called ``a``; so whoever writes the sentence says where the name stands.

    Attributes:
        about: Whom it is about, with its colon: ``"bert b1: "``; empty if nothing in particular.
        before: Words before the winner.
        winner: The name to stress; empty if there is none.
        after: The rest.
        lead: Whether it is one that a reader in a hurry must see.
    """

    __slots__ = ("about", "after", "before", "lead", "winner")

    about: str
    before: str
    winner: str
    after: str
    lead: bool

    def __new__(
        cls, before: str, winner: str = "", after: str = "", *, about: str = "", lead: bool = False
    ) -> Told:
        """Put a sentence together."""
        made = super().__new__(cls, f"{about}{before}{winner}{after}")
        made.about, made.before, made.winner, made.after = about, before, winner, after
        made.lead = lead
        return made

    def said_of(self, about: str) -> Told:
        """Return the same, about someone: ``told.said_of("bert: ")``."""
        return Told(self.before, self.winner, self.after, about=about, lead=self.lead)

    def cleaned(self, clean: Callable[[str], str]) -> Told:
        """Return the same with each part made inert; ``clean`` may strip, blanks between stay."""

        def keep(part: str) -> str:
            if not part.strip():
                return " " if part else ""
            return f"{' ' * part[0].isspace()}{clean(part).strip()}{' ' * part[-1].isspace()}"

        return Told(
            keep(self.before),
            keep(self.winner),
            keep(self.after).rstrip(),
            about=keep(self.about),
            lead=self.lead,
        )


def told(text: str) -> Told:
    """Return a sentence as it is, or a plain string as one without a winner."""
    return text if isinstance(text, Told) else Told(text)
