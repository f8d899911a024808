"""Why one request got no answer that counts."""

from __future__ import annotations


class ExchangeError(Exception):
    """A request without an answer that counts.

    Attributes:
        kind: A key of :data:`~pytest_ortbench.core.exchange.EXCHANGE_FAILURES`.
        status: Status of HTTP, 0 where there was none.
        said: What the service said of it, empty where it said nothing.

    Args:
        kind: As above.
        message: One line.
        status: As above.
        said: As above.
    """

    def __init__(self, kind: str, message: str, *, status: int = 0, said: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.said = said
