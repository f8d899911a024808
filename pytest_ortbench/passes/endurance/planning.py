"""What options of the endurance of a service say, and for which cases of a plan it is."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.core.units import parse_amount
from pytest_ortbench.passes.endurance.facts import ENDINGS, FAULTS
from pytest_ortbench.planning.axes import split_list

ALL = "all"
_FASTEST_PER_S = 1e6


def endures(case: Case) -> bool:
    """Whether a case asks a service, and is to be kept under load."""
    return case.provider.is_endpoint and case.sampling.endurance_s > 0


def lasts_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes."""
    return worker_s + case.sampling.endurance_s


def read_rate(written: OptionText) -> float:
    """Read a rate above 0."""
    value = parse_amount(written.last, "1/s", place=written.place)
    if not 0.0 < value <= _FASTEST_PER_S:
        raise UsageError(
            f"the rate {written.last!r} is out of range",
            place=written.place,
            hint="Write a number of requests a second above 0 and up to 1000000, e.g. 20",
        )
    return value


def read_faults(written: OptionText) -> tuple[str, ...]:
    """Read what is to be done to a service, each once."""
    names = tuple(dict.fromkeys(split_list(written.texts, place=written.place)))
    for name in names:
        if name not in (*FAULTS, ALL):
            raise UsageError(
                f"{name!r} is not a known fault",
                place=written.place,
                hint=did_you_mean(name, (*FAULTS, ALL)),
            )
    return tuple(FAULTS) if ALL in names else names


def refuse_without_service(*, value: float, place: str, serve: str, endpoint: str) -> None:
    """Refuse the endurance of no service."""
    if value and not serve and not endpoint:
        raise UsageError(
            "the option needs a service, and none is named",
            place=place,
            hint="To have the run start a service, add e.g. --ort-serve=app.py:app. To use one "
            "that runs, add e.g. --ort-endpoint=http://127.0.0.1:8000/v2/models/NAME/infer, with "
            "the service's own name of the model in place of NAME",
        )


def refuse_rate_alone(*, value: float, place: str, endurance_s: float) -> None:
    """Refuse a rate without a load."""
    if value:
        _require_endurance(place, endurance_s)


def refuse_idle_faults(
    *, value: tuple[str, ...], place: str, endurance_s: float, serve: str
) -> None:
    """Refuse faults without a load, and to end a service that somebody else has started."""
    if not value:
        return
    _require_endurance(place, endurance_s)
    ended = [name for name in value if name in ENDINGS]
    if ended and not serve:
        others = [name for name in value if name not in ENDINGS]
        others = others or [name for name in FAULTS if name not in ENDINGS]
        raise UsageError(
            f"{_which_end(value)} the service. That is allowed only if this run starts it",
            place=place,
            hint="To have the run start it, write e.g. --ort-serve=app.py:app in place of "
            f"--ort-endpoint. For a service that others started, write "
            f"--ort-endurance-faults={','.join(others)}",
        )


def _which_end(names: Sequence[str]) -> str:
    """Return which of some faults end a service, up to the verb."""
    ended = [repr(name) for name in names if name in ENDINGS]
    if set(names) == set(FAULTS):
        return f"{ALL!r} includes {' and '.join(ended)}, which end"
    return f"{' and '.join(ended)} {'end' if len(ended) > 1 else 'ends'}"


def _require_endurance(place: str, endurance_s: float) -> None:
    if not endurance_s:
        raise UsageError(
            "the option has an effect only together with --ort-endurance",
            place=place,
            hint="Add the number of minutes of the load, e.g. --ort-endurance=10. If you want no "
            f"load, leave {place} out",
        )
