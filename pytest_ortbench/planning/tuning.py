"""``--ort-tuning=on,off``: whether a provider searches for the fastest way before it computes.

A search takes seconds to minutes, once for each shape: in the first inference, before anything is
timed. TensorRT is not among these: it searches while it builds its engine, whatever it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
}


def tuned(provider: Provider, positions: Sequence[str]) -> list[tuple[Provider, dict[str, str]]]:
    """Return a provider in each position, with the knob that says which.

    Args:
        provider: With the options that the user gave.
        positions: ``on``, ``off``; empty leaves the provider as it is.

    Returns:
        The provider alone and without a knob where it does not search.

    Raises:
        UsageError: if the user set an option that a position decides on.
    """
    searches = SEARCHES.get(provider.alias)
    if not positions or searches is None:
        return [(provider, {})]
    given = next((key for key in searches if key in provider.options), "")
    if given:
        raise UsageError(
            f"{provider.alias}.{given} is set, and {PLACE} sets it too",
            place=PLACE,
            hint="Keep one of them",
        )
    return [
        (
            replace(
                provider,
                options={
                    **provider.options,
                    **{key: pair[position == "on"] for key, pair in searches.items()},
                },
            ),
            {"tuning": position},
        )
        for position in positions
    ]


def refuse_without_search(positions: Sequence[str], providers: Iterable[Provider]) -> None:
    """Refuse positions where no provider of a run searches for anything.

    Raises:
        UsageError: with those that do.
    """
    named = list(dict.fromkeys(provider.alias for provider in providers))
    if positions and named and not any(alias in SEARCHES for alias in named):
        raise UsageError(
            f"{', '.join(named)} search for nothing, so there is nothing to switch",
            place=PLACE,
            hint=f"It is for {', '.join(SEARCHES)}",
        )
