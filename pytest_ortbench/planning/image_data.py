"""Photos as the values of an image input: layout, size, colours and scale, each with its origin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.preparation import PLACE, Settings, numbers

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
                "photos need Pillow, which is not installed",
                hint="pip install 'pytest-ortbench[images]'",
            ) from None
        config = settings.configuration
        self._type = _TYPES[spec.type]
        self._layout = settings.decide("layout", _layout(spec.shape), "shape of the input")
        if self._layout not in ("nchw", "nhwc"):
            raise UsageError(f"layout={self._layout}", place=PLACE, hint="layout=nchw or nhwc")
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
        parts = numbers(size.replace("x", " "), "size")
        if not parts or any(part < 1 for part in parts):
            raise UsageError(f"size={size}", place=PLACE, hint="size=224, or size=480x640")
        self.height, self.width = int(parts[0]), int(parts[-1])
        self._resize = settings.decide("resize", "stretch", "default", "crop" if crop else "")
        if self._resize not in ("stretch", "crop", "pad"):
            raise UsageError(f"resize={self._resize}", place=PLACE, hint="stretch, crop or pad")
        default_color = "gray" if self.channels == 1 else "rgb"
        self._color = settings.decide("color", default_color, f"{self.channels} channels")
        if self._color not in ("rgb", "bgr", "gray"):
            raise UsageError(f"color={self._color}", place=PLACE, hint="color=rgb, bgr or gray")
        self._scale, self._mean, self._std = self._values(settings)

    def _values(self, settings: Settings) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        if self._type == "uint8":
            settings.decide_fixed("scale", "1", "uint8 takes 0 to 255")
            return 1.0, (), ()
        config = settings.configuration
        factor = config.get("rescale_factor") if config.get("do_rescale", True) else 1
        scale = numbers(
            settings.decide("scale", "1/255", "default", "" if factor is None else str(factor)),
            "scale",
        )
        normalised = config.get("do_normalize", True)
        mean, std = (
            numbers(
                settings.decide(
                    name,
                    neutral,
                    "default",
                    ":".join(map(str, config[key])) if normalised and config.get(key) else "",
                ),
                name,
            )
            for name, key, neutral in (("mean", "image_mean", "0"), ("std", "image_std", "1"))
        )
        for name, values in (("scale", scale), ("mean", mean), ("std", std)):
            if len(values) not in (1, self.channels) or (name == "std" and 0 in values):
                raise UsageError(
                    f"{name} has {len(values)} numbers, and the input has {self.channels} channels",
                    place=PLACE,
                    hint=f"Write one number, or {self.channels} that are not 0",
                )
        return scale[0], mean, std

    def read(self, path: Path) -> NDArray[Any]:
        """Read one photo as an array without the batch axis.

        Raises:
            UsageError: if it can't be read.
        """
        import numpy as np
        from PIL import Image, ImageOps, UnidentifiedImageError

        try:
            with Image.open(path) as opened:
                upright = ImageOps.exif_transpose(opened)
                picture = _flat(upright).convert("L" if self._color == "gray" else "RGB")
                picture = self._sized(picture)
        except (OSError, ValueError, SyntaxError, UnidentifiedImageError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UsageError(
                f"{str(path)!r} is no image that can be read ({reason})",
                place="--ort-inputs",
                hint="Replace it, or take it out of the folder",
            ) from None
        except Image.DecompressionBombError as error:
            raise UsageError(
                f"{str(path)!r} is too large ({error})", place="--ort-inputs"
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
        return np.ascontiguousarray(array.astype(self._type))

    def _sized(self, picture: Image.Image) -> Image.Image:
        from PIL import Image, ImageOps

        size, how = (self.width, self.height), Image.Resampling.BILINEAR
        if self._resize == "crop":
            return ImageOps.fit(picture, size, method=how)
        if self._resize == "pad":
            grey = 114 if picture.mode == "L" else (114, 114, 114)
            return ImageOps.pad(picture, size, method=how, color=grey)
        return picture.resize(size, how)


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
