"""Examples of a user's own data as arrays: which input takes them, what others are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model
from pytest_ortbench.planning.audio_data import AudioReader, audio_input
from pytest_ortbench.planning.image_data import ImageReader, PicturePlace, image_input, size_inputs
from pytest_ortbench.planning.preparation import Settings
from pytest_ortbench.planning.text_data import TOKEN_NAMES, TextReader, token_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Name of an example, and its file or text.
Example: TypeAlias = "tuple[str, Path | str]"


class ExampleReader:
    """Reads examples of any kind as arrays by the name of the input.

    Args:
        kind: ``images``, ``audio`` or ``text``.
        model: The model that takes them.
        specs: Its inputs as they would be drawn.
        settings: What says how they are read.
        examples: Name and content of each.
        sizes: Width and height that pictures are said to have, as far as somebody says so.

    Attributes:
        has_batch: Whether each input has an axis that counts examples.
        size: Height and width of what is fed, of images.
        placed: Where each picture that was read lies in the input.
        shared: Values that are the same for every example: the rate of audio, the size of images.

    Raises:
        UsageError: if no input takes them.
    """

    def __init__(
        self,
        kind: str,
        model: Model,
        specs: Sequence[InputSpec],
        settings: Settings,
        examples: Sequence[Example],
        sizes: Mapping[Path, tuple[int, int]],
    ) -> None:
        self.has_batch: dict[str, bool] = {}
        self.size = (0, 0)
        self.placed: dict[Path, PicturePlace] = {}
        self.shared: dict[str, NDArray[Any]] = {}
        self._sizes = sizes
        if kind == "text":
            taken = token_inputs(specs)
            if not taken:
                raise _no_input(kind, model)
            chosen = [spec for spec in specs if spec.name in taken]
            self._tokens = TextReader(chosen, settings, Path(model.path))
            self.has_batch = {spec.name: len(spec.shape) > 1 for spec in chosen}
            return
        spec = image_input(specs) if kind == "images" else audio_input(specs)
        if spec is None:
            raise _no_input(kind, model)
        self._name = spec.name
        self._files: ImageReader | AudioReader
        if kind == "images":
            self._files = images = ImageReader(spec, settings)
            self.size = (images.height, images.width)
            self.has_batch = {spec.name: len(spec.shape) == 4}
            self.shared = size_inputs(specs, self.size)
        else:
            paths = [content for _, content in examples if isinstance(content, Path)]
            self._files = audio = AudioReader(spec, settings, paths)
            self.has_batch = {spec.name: len(spec.shape) > 1}
            self.shared = audio.rate_inputs(specs)

    def read(self, content: Path | str) -> dict[str, NDArray[Any]]:
        """Read one example.

        Raises:
            UsageError: if it can't be read.
        """
        if isinstance(content, str):
            return self._tokens.read(content)
        if isinstance(self._files, ImageReader):
            size = self._sizes.get(content)
            array, self.placed[content] = self._files.read_placed(content, size)
            return {self._name: array}
        return {self._name: self._files.read(content)}


def _no_input(kind: str, model: Model) -> UsageError:
    inputs = ", ".join(
        f"{info.name!r} {info.type} {list(info.shape or ())}" for info in model.inputs
    )
    wants = {
        "images": "of three or four axes with 1 or 3 channels",
        "audio": "of floats with one long axis",
        "text": f"of integers called {' or '.join(TOKEN_NAMES)}",
    }[kind]
    return UsageError(
        f"to take {kind}, model {model.name!r} needs an input {wants}. Its inputs are {inputs}",
        place="--ort-inputs",
        hint="Give arrays: --ort-inputs=FILE.npz, or with labels --ort-dataset=FILE.py:FUNCTION",
    )
