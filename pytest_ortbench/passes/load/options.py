"""Options of loads. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option, switch
from pytest_ortbench.core.placing import Place


class LoadOptions:
    """What the user asks for of loads."""

    load: tuple[str, ...] = option(
        (),
        flag="--ort-load",
        kind="list",
        metavar="SCENARIO[:K:V]",
        help="also test each case with MLPerf's load generator: single-stream, multi-stream, "
        "server:RATE:LATENCY, offline, or peak:p99:20ms for the highest rate that is VALID; "
        "of a language model also server:2:ttft=2s:tpot=200ms and peak:ttft=2s:tpot=200ms; "
        "from:FILE takes rate and limit from what production reported to Prometheus",
        reader="pytest_ortbench.passes.load.planning.asked:read_loads",
        rule="pytest_ortbench.passes.load.planning.asked:refuse_loads_beyond_timeout",
        to="sampling.loads",
        asks_for="load",
        place=Place(after="samples", rank=70),
    )
    load_official: bool = switch(
        flag="--ort-load-official",
        help="use the durations of MLPerf's rules for --ort-load (10 minutes and more per load)",
        to="sampling.load_official",
        place=Place(after="samples", rank=71),
    )
    #: Absolute; empty keeps none.
    load_logs: str = option(
        "",
        flag="--ort-load-logs",
        kind="path",
        metavar="DIR",
        help="keep the load generator's own logs in this folder (default: none are kept)",
        reader="pytest_ortbench.core.option_text:read_folder_text",
        to="sampling.load_logs",
        writes="folder of others",
        place=Place(after="samples", rank=72),
    )


OPTIONS = LoadOptions
