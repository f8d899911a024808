"""The steps that a request makes through a service, with their times."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.serving.queue import Waiting

#: Where it waits, and where its inference waits for others to be joined with.
_QUEUE, _BATCH = "queue", "batch"


@dataclass(slots=True)
class Steps:
    """What became of a request, by the clock ``time.monotonic``.

    Attributes:
        began: When its head was there.
        ended: When it was answered, or refused.
        status: Status code of its response.
        made: Name, beginning and end of each step, in their order.
        rows: Rows of the inference that it took part in; 0 where there was none.
        body_bytes: What has come of its body.
    """

    began: float = 0.0
    ended: float = 0.0
    status: int = 500
    made: list[tuple[str, float, float]] = field(default_factory=list)
    rows: int = 0
    body_bytes: int = 0

    def add(self, name: str, began: float, ended: float) -> None:
        """Add a step."""
        self.made.append((name, began, ended))

    def add_waiting(self, waiting: Waiting) -> None:
        """Add those of a request that waited for its inference, as far as it came."""
        if waiting.started is None or waiting.ended is None:
            return
        taken = waiting.started if waiting.taken is None else waiting.taken
        self.add(_QUEUE, waiting.arrived, taken)
        if waiting.taken is not None:
            self.add(_BATCH, taken, waiting.started)
        self.add("inference", waiting.started, waiting.ended)
        self.rows = waiting.together

    @property
    def header(self) -> str:
        """The header ``Server-Timing``, in milliseconds; the wait for a batch is in the queue's."""
        took: dict[str, float] = {}
        for name, began, ended in self.made:
            told = _QUEUE if name == _BATCH else name
            took[told] = took.get(told, 0.0) + ended - began
        steps = [f"{name};dur={1000 * seconds:.3f}" for name, seconds in took.items()]
        return ", ".join([*steps, f"{_BATCH};desc={self.rows}"])
