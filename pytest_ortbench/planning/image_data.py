"""Photos as the values of an image input: layout, size, colours and scale, each with its origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.errors import UsageError, says
from pytest_ortbench.core.units import counted
from pytest_ortbench.planning.preparation import Settings, as_setting, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

SUFFIXES = (".jpg", ".jpeg", ".png")
_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
}
_CHANNELS = (1, 3)
#: Of the margins of padded pictures, as detectors are trained with.
_GREY = 114


def image_input(specs: Sequence[InputSpec]) -> InputSpec | None:
    """Return the input that takes images: three or four axes, of which one counts channels."""
    fitting = [spec for spec in specs if spec.type in _TYPES and _layout(spec.shape)]
    return fitting[0] if fitting else None


def _layout(shape: Sequence[int]) -> str:
    if len(shape) not in (3, 4):
        return ""
    if shape[-3] in _CHANNELS:
        return "nchw"
    return "nhwc" if shape[-1] in _CHANNELS else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePlace:
    """Where a picture lies in an input.

    Attributes:
        source: The part of the picture that is fed: left, top, right and bottom.
        target: What it covers of the input, likewise.
        width: Of the whole picture.
        height: Likewise.
    """

    source: tuple[float, float, float, float]
    target: tuple[int, int, int, int]
    width: int
    height: int

    @property
    def row(self) -> tuple[float, ...]:
        """Scale and offset of x, scale and offset of y, width, height.

        ``scale * x of the input + offset`` is x of the picture.
        """
        row: list[float] = []
        for low, high in ((0, 2), (1, 3)):
            scale = (self.source[high] - self.source[low]) / (self.target[high] - self.target[low])
            row += [scale, self.source[low] - scale * self.target[low]]
        return (*row, float(self.width), float(self.height))


#: No photo is fed with a longer side.
_LONGEST_SIDE = 65_536
#: Further inputs of detectors that take the size of the picture: height first, or not at all.
_SIZE_INPUTS = {
    "orig_target_sizes": ("width", "height"),
    "im_shape": ("height", "width"),
    "image_shape": ("height", "width"),
    "scale_factor": (),
}


def size_inputs(specs: Sequence[InputSpec], size: tuple[int, int]) -> dict[str, NDArray[Any]]:
    """Return the values of inputs that take the size of a picture, by name: that of the input.

    Boxes come out in pixels of the input then.

    Args:
        specs: All inputs of a model.
        size: Height and width that are fed.
    """
    import numpy as np

    sides = {"height": size[0], "width": size[1]}
    return {
        spec.name: np.broadcast_to(
            [sides[side] for side in _SIZE_INPUTS[spec.name]] or 1,
            spec.shape,
        ).astype(NUMPY_NAMES[spec.type[7:-1]])
        for spec in specs
        if spec.name in _SIZE_INPUTS and spec.shape and spec.shape[-1] == 2
    }


class ImageReader:
    """Reads photos as one input takes them.

    Args:
        spec: The input, with the sizes that it would have.
        settings: What says how.

    Raises:
        UsageError: for a setting that makes no sense.
    """

    def __init__(self, spec: InputSpec, settings: Settings) -> None:
        try:
            import PIL.Image  # noqa: F401
        except ImportError:
            raise UsageError(
                "to read photos, the package Pillow is needed, which is not installed",
                place="--ort-inputs",
                hint="Run: pip install 'pytest-ortbench[images]'",
            ) from None
        config = settings.configuration
        self._type = _TYPES[spec.type]
        self._layout = settings.chosen(
            "layout", ("nchw", "nhwc"), _layout(spec.shape), "shape of the input"
        )
        axes = (-2, -1) if self._layout == "nchw" else (-3, -2)
        height, width = (spec.shape[axis] for axis in axes)
        self.channels = spec.shape[-3 if self._layout == "nchw" else -1]
        size = f"{height}x{width}"
        crop = _configured_size(config.get("crop_size")) if config.get("do_center_crop") else ""
        wanted = crop or _configured_size(config.get("size"))
        if {known.origin for known in spec.resolved if known.size in (height, width)} & {"default"}:
            size = settings.decide("size", size, "default", wanted)
        else:
            size = settings.decide_fixed("size", size, f"the input {spec.name!r}")
        place = settings.place_of("size")
        parts = numbers(size.replace("x", " "), "size", place)
        if any(not 1 <= part <= _LONGEST_SIDE for part in parts):
            raise UsageError(
                f"size={size} is not a size from 1 to {_LONGEST_SIDE}",
                place=place,
                hint=settings.hint(
                    "size", "Write e.g. size=224, or height and width: size=480x640"
                ),
            )
        self.height, self.width = int(parts[0]), int(parts[-1])
        default = ("stretch", "default")
        if settings.metadata.get("stride") and settings.metadata.get("task") != "classify":
            default = ("pad", "a detector, by the stride in the model's metadata")
        self._resize = settings.chosen(
            "resize", ("stretch", "crop", "pad"), *default, configured="crop" if crop else ""
        )
        default_color = "gray" if self.channels == 1 else "rgb"
        self._color = settings.chosen(
            "color", ("rgb", "bgr", "gray"), default_color, f"{self.channels} channels"
        )
        self._scale, self._mean, self._std = self._values(settings)

    def _values(self, settings: Settings) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        if self._type == "uint8":
            settings.decide_fixed("scale", "1", "the type uint8 of the input")
            return 1.0, (), ()
        config = settings.configuration
        factor = config.get("rescale_factor") if config.get("do_rescale", True) else 1
        scale = settings.numbers(
            "scale", "1/255", configured="" if factor is None else as_setting(factor, "scale")
        )
        normalised = config.get("do_normalize", True)
        mean, std = (
            settings.numbers(
                name,
                neutral,
                configured=as_setting(config[key], name) if normalised and config.get(key) else "",
            )
            for name, key, neutral in (("mean", "image_mean", "0"), ("std", "image_std", "1"))
        )
        for name, values in (("scale", scale), ("mean", mean), ("std", std)):
            if len(values) not in (1, self.channels):
                fitting = values[: self.channels] if len(values) > self.channels else values[:1]
                example = ":".join(f"{number:g}" for number in fitting)
                raise UsageError(
                    f"{name} has {counted(len(values), 'number')}, but the input has "
                    f"{counted(self.channels, 'channel')}",
                    place=settings.place_of(name),
                    hint=settings.hint(
                        name,
                        f"Write one number, or {self.channels} with ':' between them"
                        if self.channels > 1
                        else f"Write one number, e.g. {name}={example}",
                        example,
                    ),
                )
        if 0 in std:
            raise UsageError(
                f"std={':'.join(f'{number:g}' for number in std)} would divide the inputs by 0",
                place=settings.place_of("std"),
                hint="Write numbers that are not 0, e.g. --ort-preprocess=std=0.229:0.224:0.225"
                if self.channels == 3
                else "Write a number that is not 0, e.g. --ort-preprocess=std=1",
            )
        return scale[0], mean, std

    def read(self, path: Path) -> NDArray[Any]:
        """Read one photo as an array without the batch axis.

        Raises:
            UsageError: if it can't be read.
        """
        return self.read_placed(path)[0]

    def read_placed(
        self, path: Path, size: tuple[int, int] | None = None
    ) -> tuple[NDArray[Any], PicturePlace]:
        """Read one photo likewise, and say where it lies in the array.

        Args:
            path: The photo.
            size: Width and height that it is said to have: one that has them as it is stored is
                not turned upright. ``None`` where nobody says.

        Raises:
            UsageError: if it can't be read, or has another size.
        """
        import numpy as np
        from PIL import Image, ImageOps, UnidentifiedImageError

        try:
            with Image.open(path) as opened:
                upright = opened if opened.size == size else ImageOps.exif_transpose(opened)
                if size is not None and upright.size != size:
                    raise UsageError(
                        f"{str(path)!r} has {upright.width}x{upright.height} pixels, but the file "
                        f"that --ort-dataset names says {size[0]}x{size[1]}",
                        place="--ort-dataset",
                        hint="Use the pictures that the boxes were drawn on",
                    )
                picture = _flat(upright).convert("L" if self._color == "gray" else "RGB")
                placed = self._place(picture.width, picture.height)
                picture = self._sized(picture, placed)
        except (OSError, ValueError, SyntaxError) as error:
            why, step = says("Pillow", str(error)), "Copy or create the file again"
            if isinstance(error, UnidentifiedImageError):
                why = "Pillow knows no such format"
                step = "Replace the file by a JPEG or PNG file"
            raise UsageError(
                f"{str(path)!r} can't be read as an image ({why})",
                place="--ort-inputs",
                hint=step + (", or remove it from the folder" if size is None else ""),
            ) from None
        except Image.DecompressionBombError:
            most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
            raise UsageError(
                f"{str(path)!r} has more than {most} pixels, the most that are read",
                place="--ort-inputs",
                hint="Replace the file by a smaller picture"
                if size is None
                else "Remove this picture and its boxes from the file that --ort-dataset names",
            ) from None
        array = np.asarray(picture)
        array = array[:, :, None] if array.ndim == 2 else array
        if array.shape[2] == 1 and self.channels > 1:
            array = np.repeat(array, self.channels, axis=2)
        if self._color == "bgr":
            array = array[:, :, ::-1]
        if self._type != "uint8":
            array = array.astype(np.float64) * self._scale
            array = (array - np.asarray(self._mean)) / np.asarray(self._std)
        array = array.transpose(2, 0, 1) if self._layout == "nchw" else array
        return np.ascontiguousarray(array.astype(self._type)), placed

    def _place(self, width: int, height: int) -> PicturePlace:
        """Where a picture of that size lies: whole, its middle, or whole between two margins."""
        source, target = (0.0, 0.0, float(width), float(height)), (0, 0, self.width, self.height)
        if self._resize == "crop":
            # As much of the longer side as the input is long.
            part_x = min(width, height * self.width / self.height)
            part_y = min(height, width * self.height / self.width)
            left, top = (width - part_x) / 2, (height - part_y) / 2
            source = (left, top, left + part_x, top + part_y)
        elif self._resize == "pad":
            factor = min(self.width / width, self.height / height)
            part = max(1, round(width * factor)), max(1, round(height * factor))
            corner = round((self.width - part[0]) / 2), round((self.height - part[1]) / 2)
            target = (*corner, corner[0] + part[0], corner[1] + part[1])
        return PicturePlace(source=source, target=target, width=width, height=height)

    def _sized(self, picture: Image.Image, placed: PicturePlace) -> Image.Image:
        from PIL import Image

        left, top, right, bottom = placed.target
        sized = picture.resize(
            (right - left, bottom - top), Image.Resampling.BILINEAR, placed.source
        )
        if sized.size == (self.width, self.height):
            return sized
        whole = Image.new(sized.mode, (self.width, self.height), (_GREY,) * len(sized.getbands()))
        whole.paste(sized, (left, top))
        return whole


def _flat(picture: Image.Image) -> Image.Image:
    """A picture without transparency and with 8 bits a channel: on white, and scaled down."""
    from PIL import Image

    if picture.mode.startswith("I"):
        return picture.point(lambda value: value / 257).convert("L")
    if picture.mode not in ("RGBA", "LA", "PA") and "transparency" not in picture.info:
        return picture
    upper = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", upper.size, "white"), upper)


def _configured_size(size: Any) -> str:
    """The size of a configuration: a number, or height and width, or the shortest edge."""
    if isinstance(size, int):
        return str(size)
    if not isinstance(size, dict):
        return ""
    if "height" in size and "width" in size:
        return f"{size['height']}x{size['width']}"
    return str(size["shortest_edge"]) if "shortest_edge" in size else ""
