"""Which load to measure before a machine is bought: the command, and what it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.units import clock_words
from pytest_ortbench.fleet.numbers.facts import CaseFacts
from pytest_ortbench.fleet.procurement.award import award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.machines import Terms
from pytest_ortbench.fleet.procurement.ranking import Tender

#: Settings that an option of the same name sets.
_SETTINGS = ("threads", "sessions", "concurrency")
#: How many times the seconds that a search takes it may take: stalls repeat tests.
_ROOM = 2.0
#: Timeouts are written in steps of so many seconds.
_STEP_S = 100


def load_to_measure(tenders: Sequence[Tender], terms: Terms) -> str:
    """Say which load to measure before buying, by which command, and how long that takes."""
    variant = next(
        (
            offer.economics
            for tender in tenders
            for offer in award_of(tender).priced
            if offer.economics.capacity_source == "queue"
        ),
        None,
    )
    if variant is None:
        return f"Measure a load ({terms.load_option}) on what you choose before you buy."
    case = (variant.parts or (variant.case,))[0]
    words = load_words(variant, terms)
    search = next((search for search in case.searches if search.percent == terms.percent), None)
    takes = f" and takes about {_about(search.takes_s)}" if search is not None else ""
    several = len({tender.model for tender in tenders}) > 1 or bool(variant.parts)
    also = "; likewise for the other models" if several else ""
    return (
        f"Measure a load on what you choose before you buy. On {variant.machine.name} that is "
        f"{words}, which needs pytest-ortbench[load]{takes}{also}."
    )


def load_words(variant: Economics, terms: Terms) -> str:
    """Write the command that puts the first model of an offer under load; where options can't say
    all of the case, what to add to the command of its run.
    """
    case = (variant.parts or (variant.case,))[0]
    options = [terms.load_option]
    search = next((search for search in case.searches if search.percent == terms.percent), None)
    if search is not None:
        timeout_s = math.ceil(_ROOM * search.most_s / _STEP_S) * _STEP_S
        if timeout_s > Sampling().timeout_s:
            options.append(f"--ort-timeout={timeout_s}")
    command = _command(case, variant.case.processes)
    if not command:
        return f"the command of its run with {in_shell(options)}"
    return in_shell([*command, *options])


def _about(seconds: float) -> str:
    """``20 min``: whole minutes from two on."""
    return clock_words(60 * math.ceil(seconds / 60) if seconds > 120 else seconds)


def _command(case: CaseFacts, processes: int) -> list[str]:
    """The words that measure a case again; empty where options can't say all of it."""
    settings = dict(case.knobs)
    if not case.model_file or case.dims or set(settings) - set(_SETTINGS):
        return []
    # A load is put on one process, so that callers stand for processes.
    if processes > 1:
        settings["concurrency"] = str(processes * int(settings.get("concurrency", "1")))
    # Nothing that a document names is an option.
    name = f"./{case.model_file}" if case.model_file[:1] == "-" else case.model_file
    return [
        "pytest",
        name,
        f"--ort-providers={case.provider}",
        *([] if case.precision == "native" else [f"--ort-precisions={case.precision}"]),
        *([] if case.batch == 1 else [f"--ort-batch-sizes={case.batch}"]),
        *(f"--ort-{setting}={value}" for setting, value in settings.items()),
        *([f"--ort-time={case.time_s:g}"] if case.time_s else []),
    ]
