"""How options of generation are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, why_unreadable
from pytest_ortbench.core.generation import ENGINES, Decoder
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.option_text import OptionText, exists, read_one_path, read_path
from pytest_ortbench.planning.axes import parse_choices, parse_int_list
from pytest_ortbench.planning.generations import GENERATE
from pytest_ortbench.planning.no_decoder import why_no_decoder
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.text_data import TOKENIZER, own_tokenizer

#: Tokens of a text that count, and those that are read at once: each window begins with an empty
#: cache, as in most published figures, and eight of them tell how far a figure can be trusted.
TEXT_TOKENS, WINDOW = 2048, 256
_TEXT = "--ort-text"
#: Of each of the three; longer contexts are not known.
_MOST = 10_000_000
_WAYS = ("auto", "off", "only")


def read_generate(written: OptionText) -> str:
    """Read whether requests are measured."""
    return parse_choices(written.last, _WAYS, place=written.place, several=False)[0]


def read_engines(written: OptionText) -> tuple[str, ...]:
    """Read what generates."""
    return parse_choices(_items(written), ENGINES, place=written.place, what="generation engine")


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


def read_foreseen(written: OptionText) -> str:
    """Read the path of a text, which must be a file."""
    path = read_one_path(written)
    if not path.is_file():
        raise UsageError(
            f"{str(path)!r} is a folder, not a text file"
            if path.is_dir()
            else f"the file {str(path)!r} does not exist",
            place=written.place,
            hint="Name a text file" if path.is_dir() else "Correct the path",
        )
    return str(path)


def read_sources(written: OptionText) -> dict[str, str]:
    """Read folders of transformers, each for one model or, without a name, for all others.

    Raises:
        UsageError: for a model with two folders.
    """
    sources: dict[str, str] = {}
    for text in written.texts:
        name, equals, folder = text.partition("=")
        # A path may hold the sign, too.
        if not equals or exists(read_path(text, written)):
            name, folder = "", text
        path = Path(os.path.abspath(read_path(folder, written)))  # noqa: PTH100  # follows no link
        name = name.strip()
        earlier = sources.setdefault(name, str(path))
        if earlier != str(path):
            whose = f"model {name!r} has two folders" if name else "two folders are for all models"
            raise UsageError(
                f"{whose}: {earlier!r} and {str(path)!r}",
                place=written.place,
                hint="Keep one of them. For several models, give the option once for each: "
                "--ort-source=MODEL=FOLDER",
            )
    return sources


def check_text(request: PlanRequest, models: Sequence[Model]) -> None:
    """Refuse a text that no model foresees, or that one can't read.

    Raises:
        UsageError: as :func:`windows_of_text`, and where no model writes text.
    """
    if not request.sampling.text:
        return
    # What follows from an encoder can't be foreseen from the text alone.
    decoders = [
        (model, model.decoder)
        for model in models
        if model.decoder is not None and not model.decoder.heard
    ]
    if request.generate == "off":
        raise UsageError(
            "the option has no effect together with --ort-generate=off",
            place=_TEXT,
            hint=f"Leave one of them out, {_TEXT} or --ort-generate=off",
        )
    if not decoders:
        why, step = ", and this run has none", f"Leave {_TEXT} out, or name such a model"
        if len(models) == 1 and models[0].digest:
            why = f". {models[0].name} is not taken for one: {why_no_decoder(models[0])}"
            step = (
                f"Leave {_TEXT} out. If {models[0].name} is such a model, correct this when you "
                "export it"
            )
        raise UsageError(
            f"the option is for language models that go on with a text{why}",
            place=_TEXT,
            hint=step,
        )
    for model, decoder in decoders:
        windows_of_text(Path(request.sampling.text), Path(model.path), decoder)


def refuse_unused_requests(options: Any, cases: Sequence[Case]) -> None:
    """Refuse what the command line asks of requests where no case of a run is one.

    Raises:
        UsageError: for the first of the options.
    """
    if not cases or any(case.knobs.get("workload") == GENERATE for case in cases):
        return
    if not all(case.model.digest for case in cases):
        return  # of one that can't be read nobody knows, and its row says why
    for name in ("engines", "prompt_tokens", "new_tokens", "depths"):
        if name in options.typed and getattr(options, name):
            raise UsageError(
                f"{options.given[name]} has no effect, since no case of this run gives prompts to "
                "a language model",
                place=options.place_of(name),
                hint=f"Leave one of them out, {options.given[name]} or --ort-generate=off"
                if options.generate == "off"
                else f"Leave {options.given[name]} out. If a model of this run is a language "
                "model, write --ort-generate=only to see why it is not measured with prompts",
            )


def windows_of_text(text: Path, model: Path, decoder: Decoder) -> tuple[tuple[int, ...], ...]:
    """Return the tokens of a text, in windows that fit into the context of a model.

    Args:
        text: UTF-8; its first tokens count.
        model: Its tokenizer lies beside it.
        decoder: Its context and vocabulary.

    Raises:
        UsageError: for a text that can't be read or has a single token, and for a tokenizer that is
            missing, can't be read, or gives tokens that the model does not know.
    """
    ids = _encoded(text, model)[:TEXT_TOKENS]
    if len(ids) < 2:
        raise UsageError(
            f"the text in {str(text)!r} has fewer than two tokens",
            place=_TEXT,
            hint="Name a longer text file",
        )
    if max(ids) >= decoder.vocabulary:
        raise UsageError(
            f"the {TOKENIZER} beside {model.name} is of another model: it gives the token "
            f"{max(ids)}, but the last token of {model.name} is {decoder.vocabulary - 1}",
            place=_TEXT,
            hint=f"Copy the {TOKENIZER} from the folder that {model.name} was exported from",
        )
    size = min(WINDOW, decoder.context or WINDOW)
    windows = [ids[start : start + size] for start in range(0, len(ids), size)]
    return tuple(window for window in windows if len(window) > 1)


def _encoded(text: Path, model: Path) -> tuple[int, ...]:
    tokenizer = own_tokenizer(model, place=_TEXT)
    try:
        content = text.read_text(encoding="utf-8")
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"{str(text)!r} {what}", place=_TEXT, hint=hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{str(text)!r} is no text in UTF-8: its byte {error.start} is "
            f"0x{error.object[error.start]:02x}",
            place=_TEXT,
            hint="Save the file as UTF-8, or name another one",
        ) from error
    return tuple(tokenizer.encode(content).ids)


def _items(written: OptionText) -> tuple[str, ...]:
    """Return what stands between commas or colons; both part sizes elsewhere, too."""
    return tuple(text.replace(":", ",") for text in written.texts)
