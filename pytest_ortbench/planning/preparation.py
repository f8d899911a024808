"""How a user's own files become the values of an input: every setting with where it came from.

A setting is asked for first by ``--ort-preprocess``, then by the model's metadata, then by a
configuration file beside the model; what nobody says has a documented default.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import PreparationStep
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.models.metadata import configuration_of, metadata_of

PLACE = "--ort-preprocess"
#: What may be set, and an example of each.
SETTINGS = {
    "size": "480x640",
    "resize": "crop",
    "layout": "nchw",
    "color": "rgb",
    "scale": "1/255",
    "mean": "0.485:0.456:0.406",
    "std": "0.229:0.224:0.225",
    "rate": "16000",
    "length": "128",
}
_CONFIGURATION = "preprocessor_config.json"


@dataclass(slots=True)
class Settings:
    """Settings of one model, and the steps that were taken from them so far.

    Attributes:
        model: Name of the model's file.
        given: What the user set.
        metadata: What the model file says.
        configuration: What the file beside it says.
        steps: What was decided, by name.
        from_model: Names of those that the model file decided.
    """

    model: str
    given: Mapping[str, str]
    metadata: Mapping[str, str]
    configuration: Mapping[str, Any]
    steps: dict[str, PreparationStep] = field(default_factory=dict)
    from_model: set[str] = field(default_factory=set)

    def decide(self, name: str, default: str, reason: str = "default", configured: str = "") -> str:
        """Return a setting, and note it as a step with its origin.

        Args:
            name: A key of :data:`SETTINGS`.
            default: What holds where nobody says anything.
            reason: Where the default comes from.
            configured: What the configuration file says; empty where it says nothing.
        """
        written = self.metadata.get(name) or (
            self.metadata.get("imgsz") if name == "size" else None
        )
        if name in self.given:
            value, origin = self.given[name], PLACE
        elif written:
            value, origin = as_setting(written, name), "the model's metadata"
            self.from_model.add(name)
        elif configured:
            value, origin = configured, _CONFIGURATION
        else:
            value, origin = default, reason
        self.steps[name] = PreparationStep(name=name, value=value, origin=origin)
        return value

    def place_of(self, name: str) -> str:
        """Return where a setting was written, for a message about its value."""
        is_of_model = name in self.from_model
        return f"the metadata of {self.model}" if is_of_model else self.steps[name].origin

    def is_configured(self, name: str) -> bool:
        """Return whether the configuration file decided a setting."""
        return self.steps[name].origin == _CONFIGURATION

    def hint(self, name: str, correct: str, example: str = "") -> str:
        """Return the next step for a setting with a wrong value: files are not for this user.

        Args:
            name: The setting.
            correct: The next step where the user set it.
            example: A value that fits; empty for the usual one.
        """
        if name in self.given:
            return correct
        return f"To replace it, write e.g. {PLACE}={name}={example or SETTINGS[name]}"

    def chosen(
        self,
        name: str,
        choices: Sequence[str],
        default: str,
        reason: str = "default",
        configured: str = "",
    ) -> str:
        """Return a setting that is one of a few words, in any case.

        Raises:
            UsageError: for another word.
        """
        value = self.decide(name, default, reason, configured).strip().lower()
        if value not in choices:
            raise UsageError(
                f"{value!r} is not a value of {name}",
                place=self.place_of(name),
                hint=self.hint(
                    name, f"Write {' or '.join(f'{name}={choice}' for choice in choices)}"
                ),
            )
        return value

    def numbers(self, name: str, default: str, configured: str = "") -> tuple[float, ...]:
        """Return a setting that is a list of numbers.

        Raises:
            UsageError: if it is none.
        """
        value = self.decide(name, default, configured=configured)
        return numbers(value, name, self.place_of(name))

    def decide_fixed(self, name: str, value: str, reason: str) -> str:
        """Return what the graph fixes, which a setting of the user may not contradict."""
        given = self.given.get(name)
        if given is not None and given != value:
            raise UsageError(
                f"{name}={given} can't be used, since {reason} requires {value}",
                place=PLACE,
                hint=f"Leave {name}={given} out of {PLACE}. To feed {name}={given}, name a model "
                "that accepts it",
            )
        self.steps[name] = PreparationStep(name=name, value=value, origin=reason)
        return value


def settings_of(model_path: str, given: Mapping[str, str]) -> Settings:
    """Collect what says how a model's inputs are prepared.

    Raises:
        UsageError: for a setting that does not exist.
    """
    for name in given:
        if name not in SETTINGS:
            raise UsageError(
                f"{name!r} is not a setting", place=PLACE, hint=did_you_mean(name, SETTINGS)
            )
    path = Path(model_path)
    return Settings(
        model=path.name,
        given=given,
        metadata=metadata_of(path),
        configuration=configuration_of(path, _CONFIGURATION),
    )


def numbers(text: str, name: str, place: str = PLACE) -> tuple[float, ...]:
    """Read numbers with colons, commas or blanks between, each maybe a fraction: ``1/255``.

    Args:
        text: What was written.
        name: The setting.
        place: Where it was written.

    Raises:
        UsageError: for anything else.
    """
    parts = text.strip("[]() ").replace(":", " ").replace(",", " ").split()
    is_finite = True
    try:
        found = tuple(_number(part) for part in parts)
        is_finite = all(map(math.isfinite, found))
        if not found or not is_finite:
            raise ValueError
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"{name}={text} is not {'a list of numbers' if is_finite else 'a finite number'}",
            place=place,
            hint=f"{'Write' if place == PLACE else 'To replace it, write'} e.g. "
            f"{PLACE}={name}={SETTINGS[name]}",
        ) from None
    return found


def _number(text: str) -> float:
    above, slash, below = text.partition("/")
    return float(above) / float(below) if slash else float(above)


def as_setting(written: object, name: str) -> str:
    """Return what a file says as the option has it: of a size ``[640, 640]`` is ``640x640``."""
    value = written
    if isinstance(written, str):
        try:
            value = ast.literal_eval(written)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return written
    if isinstance(value, list | tuple):
        return ("x" if name == "size" else ":").join(map(str, value))
    return str(written)
