"""What a case is fed as its variant declares it, now and when real inputs turn up later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import Recipe
from pytest_ortbench.planning.feeds import Refused, resolve_inputs
from pytest_ortbench.planning.variants import PlannedVariant, fed_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeding:
    """What is needed to feed a planned case something else.

    Attributes:
        sizes: Sizes of dimensions by symbol: those that the user set and those of its workload.
        batch: The batch that was asked for; ``None``: nobody asked.
        made: The variant that it is fed to.
        recipes: Precisions that can be made, by name.
        refusal: Why the case can't run, whatever it is fed; ``None`` if only its inputs decide.
    """

    sizes: Mapping[str, int]
    batch: int | None
    made: PlannedVariant
    recipes: Mapping[str, Recipe]
    refusal: Failure | None

    def from_files(self, case: Case, path: Path) -> tuple[InputSpec, ...] | Failure:
        """Inputs of the case from the file or folder at ``path``, or why they don't fit it."""
        feed = feed_of(case.model, self.batch, self.sizes, path)
        return feed if isinstance(feed, Failure) else fed_to(self.made, feed, self.recipes)


def feed_of(
    model: Model, batch: int | None, sizes: Mapping[str, int], inputs: Path | None
) -> tuple[InputSpec, ...] | Failure:
    """Inputs of one shape, or why this model can't have it: its other shapes go on."""
    try:
        return resolve_inputs(model, batch=batch, dims=sizes, inputs_path=inputs)
    except Refused as refused:
        return refused.failure
    except ModelError as error:
        return Failure(kind="error", phase="inputs", message=error.message, hint=error.hint)
