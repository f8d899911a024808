"""Lines of text as token ids: by the tokenizer file beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import UsageError, says, supply_step
from pytest_ortbench.core.lfs_pointer import PULL, is_pointer
from pytest_ortbench.models.metadata import file_beside
from pytest_ortbench.planning.preparation import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = (".txt",)
TOKENIZER = "tokenizer.json"
#: What an encoding holds, by the name of the input.
_FIELDS = {
    "input_ids": "ids",
    "ids": "ids",
    "tokens": "ids",
    "attention_mask": "attention_mask",
    "token_type_ids": "type_ids",
    "segment_ids": "type_ids",
}
#: Names of an input that takes token ids.
TOKEN_NAMES = tuple(name for name, field in _FIELDS.items() if field == "ids")
_PADDING = ("[PAD]", "<pad>", "<|pad|>", "<|endoftext|>")


def token_inputs(specs: Sequence[InputSpec]) -> dict[str, str]:
    """Return what each input takes of an encoding; empty where no input takes token ids."""
    named = {
        spec.name: _FIELDS[spec.name.lower()]
        for spec in specs
        if spec.name.lower() in _FIELDS and "int" in spec.type and spec.shape
    }
    return named if "ids" in named.values() else {}


class TextReader:
    """Turns lines into token ids of one length.

    Args:
        specs: Inputs that take something of an encoding.
        settings: What says how.
        model: Path of the model file.

    Raises:
        UsageError: if there is no tokenizer, or nothing to read it with.
    """

    def __init__(self, specs: Sequence[InputSpec], settings: Settings, model: Path) -> None:
        hint = (
            f"Put the model's {TOKENIZER} there. Without it, give an .npz file with the token ids, "
            "one array per input"
        )
        self._tokenizer = own_tokenizer(model, place="--ort-inputs", hint=hint)
        settings.decide_fixed("tokenizer", TOKENIZER, "beside the model")
        first = specs[0]
        is_open = any(known.origin == "default" for known in first.resolved)
        decide = settings.decide if is_open else settings.decide_fixed
        text = decide(
            "length", str(first.shape[-1]), "default" if is_open else f"the input {first.name!r}"
        )
        if not text.isdigit() or int(text) < 1:
            raise UsageError(
                f"length is {text!r}, not a whole number above 0",
                place=settings.place_of("length"),
                hint=settings.hint("length", "Write e.g. length=128"),
            )
        self.length = int(text)
        padding = (self._tokenizer.token_to_id(token) for token in _PADDING)
        number = next((number for number in padding if number is not None), 0)
        self._tokenizer.enable_truncation(self.length)
        self._tokenizer.enable_padding(length=self.length, pad_id=number)
        self._specs = tuple(specs)

    def read(self, line: str) -> dict[str, NDArray[Any]]:
        """Return the values of each input for one line."""
        import numpy as np

        encoding = self._tokenizer.encode(line)
        return {
            spec.name: np.asarray(
                getattr(encoding, _FIELDS[spec.name.lower()]),
                dtype="int32" if "int32" in spec.type else "int64",
            )
            for spec in self._specs
        }


def own_tokenizer(model: Path, *, place: str, hint: str = "") -> Any:
    """Return the tokenizer that lies beside a model.

    Args:
        model: Path of the model file.
        place: Option that needs it, for messages.
        hint: What to do where there is none; empty if the option can be left out.

    Raises:
        UsageError: if there is no tokenizer, or nothing to read it with.
    """
    file = file_beside(model, TOKENIZER)
    if file is None:
        raise UsageError(
            f"{model.name} takes token ids, and to make them from text, {TOKENIZER} is needed "
            "beside the model",
            place=place,
            hint=hint
            or f"Put the model's {TOKENIZER} there. If you do not have it, leave out {place}",
        )
    try:
        import tokenizers
    except ImportError as error:
        supply = "Run: pip install 'pytest-ortbench[text]'"
        raise UsageError(
            "texts need the package tokenizers, which is not installed"
            if isinstance(error, ModuleNotFoundError)
            else "texts need the package tokenizers, which can't be imported "
            f"({says('Python', str(error))})",
            place=place,
            hint=supply_step(error, supply, "tokenizers"),
        ) from None
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001 - the library raises bare exceptions
        if is_pointer(file):
            what = f"{str(file)!r} is a Git LFS pointer: the file itself was not fetched"
            raise UsageError(what, place=place, hint=PULL) from None
        raise UsageError(
            f"{str(file)!r} can't be read as a tokenizer "
            f"({says('the package tokenizers', str(error))})",
            place=place,
            hint=f"Replace the file by the {TOKENIZER} that belongs to the model. If it is that "
            "file already, run: pip install --upgrade tokenizers",
        ) from None
