"""How options of generation are read."""

from __future__ import annotations

from pytest_ortbench.core.generation import ENGINES
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.planning.axes import parse_choices, parse_int_list

#: Of each of the three; longer contexts are not known.
_MOST = 10_000_000
_WAYS = ("auto", "off", "only")


def read_generate(written: OptionText) -> str:
    """Read whether requests are measured."""
    return parse_choices(written.last, _WAYS, place=written.place)[0]


def read_engines(written: OptionText) -> tuple[str, ...]:
    """Read what generates."""
    return parse_choices(_items(written), ENGINES, place=written.place, what="engine")


def read_tokens(written: OptionText) -> tuple[int, ...]:
    """Read lengths of prompts."""
    return parse_int_list(_items(written), place=written.place, most=_MOST, example="16:512")


def read_new_tokens(written: OptionText) -> tuple[int, ...]:
    """Read how many tokens are written: the second one is the first that has a time of its own."""
    return parse_int_list(_items(written), place=written.place, least=2, most=_MOST, example="64")


def read_depths(written: OptionText) -> tuple[int, ...]:
    """Read how many tokens are in the cache before the prompt."""
    return parse_int_list(
        _items(written), place=written.place, least=0, most=_MOST, example="0:4096"
    )


def _items(written: OptionText) -> tuple[str, ...]:
    """Return what stands between commas or colons; both part sizes elsewhere, too."""
    return tuple(text.replace(":", ",") for text in written.texts)
