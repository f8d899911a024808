"""``--ort-tuning=on,off``: whether a provider searches for the fastest way before it computes.

A search takes seconds to minutes, once for each shape: in the first inference, or while the session
is created (TensorRT, which times kernels as it builds its engine, and QNN's compiler). Nothing is
timed before it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.errors import UsageError

PLACE = "--ort-tuning"

#: Options of each provider that decide on it, with their values for ``off`` and ``on``. CUDA's own
#: default is between these: it searches for convolutions, and not for products (TunableOp).
SEARCHES: dict[str, dict[str, tuple[str, str]]] = {
    "cuda": {
        "cudnn_conv_algo_search": ("HEURISTIC", "EXHAUSTIVE"),
        "tunable_op_enable": ("0", "1"),
        "tunable_op_tuning_enable": ("0", "1"),
    },
    "rocm": {
        "miopen_conv_exhaustive_search": ("0", "1"),
        "tunable_op_enable": ("0", "1"),
        "tunable_op_tuning_enable": ("0", "1"),
    },
    "migraphx": {"migraphx_exhaustive_tune": ("0", "1")},
    # At level 0 the builder takes the first kernel that runs, at 5 it compiles and compares most.
    "tensorrt": {"trt_builder_optimization_level": ("0", "5")},
    "qnn": {"htp_graph_finalization_optimization_mode": ("1", "3")},
}


def tuned(provider: Provider, positions: Sequence[str]) -> list[tuple[Provider, dict[str, str]]]:
    """Return a provider in each position, with the knob that says which.

    Args:
        provider: With the options that the user gave; of a chain, each link that searches.
        positions: ``on``, ``off``; empty leaves the provider as it is.

    Returns:
        The provider alone and without a knob where it does not search.

    Raises:
        UsageError: if the user set an option that a position decides on.
    """
    searching = [link for link in provider.links if link.alias in SEARCHES]
    if not positions or not searching:
        return [(provider, {})]
    for link in searching:
        keys = [key for key in SEARCHES[link.alias] if key in link.options]
        if keys:
            given = " and ".join(
                f"--ort-provider-option={link.alias}.{key}={link.options[key]}" for key in keys
            )
            raise UsageError(
                f"{given} already {'decides' if len(keys) == 1 else 'decide'} whether {link.alias} "
                "searches for the fastest kernels",
                place=PLACE,
                hint=f"To use {PLACE}, leave out {given}. To keep {given}, leave out {PLACE}",
            )
    return [
        (provider.of_links(partial(_switched, position=position)), {"tuning": position})
        for position in positions
    ]


def _switched(provider: Provider, position: str) -> Provider:
    searches = SEARCHES.get(provider.alias, {})
    values = {key: pair[position == "on"] for key, pair in searches.items()}
    return replace(provider, options={**provider.options, **values})


def refuse_without_search(positions: Sequence[str], providers: Iterable[Provider]) -> None:
    """Refuse positions where no provider of a run searches for anything.

    Raises:
        UsageError: with those that do.
    """
    named = list(dict.fromkeys(link.alias for provider in providers for link in provider.links))
    if positions and named and not any(alias in SEARCHES for alias in named):
        raise UsageError(
            "the option makes a provider search for its fastest kernels, which none of the "
            f"requested providers ({', '.join(named)}) can do",
            place=PLACE,
            hint=f"Leave out {PLACE}. It works only with the providers {', '.join(SEARCHES)}",
        )
