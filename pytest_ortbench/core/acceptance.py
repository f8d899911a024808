"""What a project accepts: one entry of ``ortbench-accepted.toml``, and which findings it is about.

An entry is about what was seen when it was written: a number may be worse by so much and no more,
and anything that is no number is accepted of one model file only.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.gate import SUBJECTS
from pytest_ortbench.core.ids import id_fits, is_whole_id
from pytest_ortbench.core.metrics import METRICS, metric_hint

#: The one file, in pytest's root directory.
FILE_NAME = "ortbench-accepted.toml"

#: What an entry about one of them is about as well.
_PARTS = {"accuracy": ("answers",)}
_PREFIXES = {"accuracy": "accuracy_"}

#: The gate decides the median by a statistic of its own and calls it the latency; the numbers of a
#: difference between two sides are what it says of their answers.
_ALIASES = {"latency_p50": "latency", "sides_sqnr": "answers", "sides_agreement": "answers"}

_GLOB = "*?["


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedEntry:
    """One thing that a project accepts.

    Attributes:
        case: Which cases, by id; a pattern as in limits.
        metric: What of them: a metric of the registry or a key of
            :data:`~pytest_ortbench.core.gate.SUBJECTS`; empty for everything.
        reason: Why, in the words of whoever accepted it.
        until: The last day on which it holds; ``None`` for no end.
        worse_by: How much worse than the baseline it may be, as a share; ``None`` for any.
        model: First characters of the digest of the model that is meant; empty for any.
        line: Line of the file that it begins at; 0 for one that stands in no file.
    """

    case: str
    metric: str = ""
    reason: str
    until: date | None = None
    worse_by: float | None = None
    model: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """Case and metric, as messages name the entry."""
        return f"{self.case} ({self.metric})" if self.metric else self.case

    def is_about(self, about: str) -> bool:
        """Whether a finding about a metric or subject is meant."""
        about = _ALIASES.get(about, about)
        if self.metric in ("", about):
            return True
        prefix = _PREFIXES.get(self.metric, "")
        return about in _PARTS.get(self.metric, ()) or (bool(prefix) and about.startswith(prefix))

    def fits(self, case_id: str, runtime: str, case_ids: Collection[str] = ()) -> bool:
        """Whether a case is meant.

        Args:
            case_id: The case.
            runtime: Label of its runtime, which may stand behind a ``+``.
            case_ids: Those of the whole run: one of them, written whole, means that case only.
        """
        names = (case_id, f"{case_id}+{runtime}")
        if self.case in names:
            return True
        if self.case in case_ids:
            return False
        return any(_fits(name, self.case) for name in names)


def _fits(name: str, pattern: str) -> bool:
    """Whether a glob fits, or whole parts of an id are named.

    A limit may name any piece of an id. What excuses a case is read more strictly, so that ``b1``
    never stands for ``b16``, nor ``net`` for ``resnet``.
    """
    if any(mark in pattern for mark in _GLOB):
        return id_fits(name, pattern)
    if is_whole_id(pattern):  # of that model, not of one whose path ends so
        return name.startswith((f"{pattern}/", f"{pattern}+"))
    return f"/{pattern.strip('/')}/" in f"/{name}/"


def accept_command(case: str, metric: str = "", *, run: str = "") -> str:
    """Return the command that accepts what is wrong with a case, as it is typed.

    Args:
        case: The case.
        metric: What of it; empty for everything.
        run: The run that found it; empty for the newest one.
    """
    limited = f" --metric={metric}" if metric else ""
    found = f" --run={shlex.quote(run)}" if run else ""
    return f"ortbench accept {shlex.quote(case)}{limited}{found} --reason=TEXT"


def metric_name(written: str, *, place: str) -> str:
    """Return the name of what an entry is about.

    Raises:
        UsageError: if there is no such metric or subject.
    """
    name = _ALIASES.get(written, written)
    if name in METRICS or name in SUBJECTS:
        return name
    raise UsageError(
        f"{written!r} is not a metric that can be accepted",
        place=place,
        hint=metric_hint(written, SUBJECTS),
    )
