"""WAV files as the values of an audio input: one channel, at the rate that the model takes."""

from __future__ import annotations

import math
import shlex
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import InputSpec, PreparationStep
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.errors import UsageError, says, why_unreadable
from pytest_ortbench.planning.preparation import PLACE, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = (".wav",)
_FLOATS = ("tensor(float)", "tensor(double)")
#: What the configuration file beside a model calls the rate.
_CONFIGURED_RATE = "sampling_rate"
_RATE_NAMES = ("sr", "rate", "sample_rate", "sampling_rate")


def audio_input(specs: Sequence[InputSpec]) -> InputSpec | None:
    """Return the input that takes a waveform: floats whose last axis is the only long one."""
    fitting = [
        spec
        for spec in specs
        if spec.type in _FLOATS
        and spec.shape
        and spec.shape[-1] > 1
        and all(size == 1 for size in spec.shape[1:-1])
        and len(spec.shape) <= 3
    ]
    return fitting[0] if fitting else None


class AudioReader:
    """Reads WAV files as one input takes them.

    Args:
        spec: The input, with the sizes that it would have.
        settings: What says how.
        files: All files, whose rate holds where nothing else says one.
    """

    def __init__(self, spec: InputSpec, settings: Settings, files: Sequence[Path]) -> None:
        configured = settings.configuration.get(_CONFIGURED_RATE)
        written = settings.metadata.get("sample_rate") or settings.metadata.get("sampling_rate")
        rates = sorted({_rate_of(file) for file in files})
        own = str(_rate_of(files[0]))
        self.rate = int(
            _whole(
                "rate",
                settings.decide(
                    "rate",
                    str(written or own),
                    "the model's metadata" if written else "rate of the files",
                    "" if configured is None else str(configured),
                ),
                settings,
            )
        )
        others = [rate for rate in rates if rate != self.rate]
        if others:
            is_told = bool(written or configured is not None or "rate" in settings.given)
            _check_resampling(files, self.rate, others, told=is_told)
            written = ", ".join(map(str, others))
            settings.steps["resampled"] = PreparationStep(
                name="resampled", value=f"{written} to {self.rate}", origin="rate of the files"
            )
        self._shape = spec.shape[1:] if len(spec.shape) > 1 else spec.shape
        is_open = any(
            known.origin == "default" and known.size == spec.shape[-1] for known in spec.resolved
        )
        decide = settings.decide if is_open else settings.decide_fixed
        reason = "default" if is_open else f"the input {spec.name!r}"
        self.length = _whole("length", decide("length", str(spec.shape[-1]), reason), settings)
        self._type = "float64" if "double" in spec.type else "float32"

    def read(self, path: Path) -> NDArray[Any]:
        """Read one file at the rate of the input: its first samples, then silence.

        Raises:
            UsageError: if it can't be read.
        """
        import numpy as np

        rate, values = _opened(path)
        if rate != self.rate:
            from scipy.signal import resample_poly

            shared = math.gcd(rate, self.rate)
            values = resample_poly(values, self.rate // shared, rate // shared)
        made = np.zeros(self.length, dtype=self._type)
        part = values[: self.length]
        made[: len(part)] = part
        return made.reshape((*self._shape[:-1], self.length))

    def rate_inputs(self, specs: Sequence[InputSpec]) -> dict[str, NDArray[Any]]:
        """Return the values of the inputs that take the rate itself, by name."""
        import numpy as np

        return {
            spec.name: np.full(spec.shape, self.rate, NUMPY_NAMES[spec.type[7:-1]])
            for spec in specs
            if spec.name.lower() in _RATE_NAMES and "int" in spec.type
        }


def _check_resampling(
    files: Sequence[Path], rate: int, others: Sequence[int], *, told: bool
) -> None:
    """Refuse files of other rates where nothing here can resample them.

    Args:
        files: All files.
        rate: The rate of the input.
        others: Rates of files that differ from it.
        told: Whether somebody says what the model takes; otherwise it is the rate of the first
            file.
    """
    if find_spec("scipy") is not None:
        return
    path = next(file for file in files if _rate_of(file) in others)
    raise UsageError(
        f"{str(path)!r} has {_rate_of(path)} samples per second, but "
        + (f"the model takes {rate}" if told else f"{str(files[0])!r} has {rate}"),
        place="--ort-inputs",
        hint="To have such files resampled, run: pip install 'pytest-ortbench[audio]'. If "
        f"{rate} is wrong for this model, write {PLACE}=rate={_rate_of(path)}"
        if told
        else "To have the files resampled to one rate, run: pip install "
        "'pytest-ortbench[audio]'. Then name the rate that the model takes, e.g. "
        f"{PLACE}=rate={rate}",
    )


def _whole(name: str, text: str, settings: Settings) -> int:
    if not text.isdigit() or int(text) < 1:
        key = _CONFIGURED_RATE if settings.is_configured(name) else name
        raise UsageError(
            f"{key} is {text!r}, not a whole number above 0",
            place=settings.place_of(name),
            hint=settings.hint(name, f"Write e.g. {name}=16000"),
        )
    return int(text)


def _rate_of(path: Path) -> int:
    with _wave(path) as stream:
        return stream.getframerate()


@contextmanager
def _wave(path: Path) -> Iterator[wave.Wave_read]:
    try:
        with wave.open(str(path)) as stream:
            yield stream
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"{str(path)!r} {what}", place="--ort-inputs", hint=hint) from None
    except EOFError:
        raise UsageError(
            f"{str(path)!r} is empty or cut off",
            place="--ort-inputs",
            hint="Copy the whole file again",
        ) from None
    except wave.Error as error:
        raise UsageError(
            f"{str(path)!r} is not a WAV file that can be read ({says('Python', str(error))})",
            place="--ort-inputs",
            hint="Put a PCM file in its place. To convert it, run: ffmpeg -i "
            f"{shlex.quote(str(path))} -c:a pcm_s16le new.wav",
        ) from None


def _opened(path: Path) -> tuple[int, NDArray[Any]]:
    """Rate, and the mean of the channels from -1 to 1."""
    import numpy as np

    with _wave(path) as stream:
        rate, channels, width = (
            stream.getframerate(),
            stream.getnchannels(),
            stream.getsampwidth(),
        )
        raw = stream.readframes(stream.getnframes())
    raw = raw[: len(raw) // (width * channels) * width * channels]
    if width == 1:
        values = (np.frombuffer(raw, np.uint8).astype(np.float64) - 128) / 128
    elif width == 3:
        parts = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        wide = np.concatenate([np.zeros((len(parts), 1), np.uint8), parts], axis=1)
        values = np.ascontiguousarray(wide).view("<i4").ravel() / 2.0**31
    else:
        values = np.frombuffer(raw, f"<i{width}") / 2.0 ** (8 * width - 1)
    return rate, values.reshape(-1, channels).mean(axis=1)
