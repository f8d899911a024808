"""Which file stands for a model at a precision: its own, one that must be made, or none.

A case is fed as its variant declares it, when it is planned and when real inputs turn up later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.model import Model, Variant
from pytest_ortbench.core.model_spec import ORT
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.precision import FLOOR, HOLDS, OWN_FILE, precision_of
from pytest_ortbench.core.recipe import GRAPH_BASES, Conversion, Recipe
from pytest_ortbench.planning.feeds import inputs_at
from pytest_ortbench.planning.real_inputs import stored_sets
from pytest_ortbench.planning.sizes import ModelAxes, RefusedCombination

#: Files in ONNX Runtime's own format, which its tools can't read either.

_HALF = {"fp16": "tensor(float16)", "bf16": "tensor(bfloat16)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnVariant:
    """A file that the user calls a variant of a model.

    Attributes:
        name: As it stands in ids, where a precision stands.
        model: The file as it was read; ``None`` if it can't be.
        error: Why not.
        sqnr_floor_db: Its accuracy floor, ``None`` for the default one.
    """

    name: str
    model: Model | None
    error: str = ""
    sqnr_floor_db: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVariant:
    """The file of one precision.

    Attributes:
        variant: As far as it is known before it is made.
        conversion: What has to be made first; ``None`` for a file that is there.
        refusal: Why there can't be one.
        model: The own variant as a model, for its inputs; ``None`` otherwise.
    """

    variant: Variant
    conversion: Conversion | None = None
    refusal: Failure | None = None
    model: Model | None = None


def own_variant(own: OwnVariant, of: Model) -> PlannedVariant:
    """Plan a file of the user's."""
    if own.model is None:
        failure = Failure(kind="error", phase="inputs", message=own.error)
        stand_in = Variant(precision=own.name, path=of.path, digest="", size_bytes=0)
        return PlannedVariant(variant=stand_in, refusal=failure)
    recipe = {OWN_FILE: Path(own.model.path).name, HOLDS: precision_of(own.model)}
    if own.sqnr_floor_db is not None:
        recipe[FLOOR] = f"{own.sqnr_floor_db:g}"
    return PlannedVariant(
        variant=Variant(
            precision=own.name,
            path=own.model.path,
            digest=own.model.digest,
            size_bytes=own.model.size_bytes,
            external_files=own.model.external_files,
            recipe=recipe,
        ),
        model=own.model,
    )


def variant_of(
    model: Model,
    precision: str,
    recipes: Mapping[str, Recipe],
    *,
    drawn_for: Sequence[InputSpec],
    inputs: Path | None = None,
    seed: int = 0,
    custom_ops: tuple[str, ...] = (),
) -> PlannedVariant:
    """Plan a precision of a model.

    Args:
        model: The model.
        precision: ``native`` or a key of ``recipes``.
        recipes: What can be made.
        drawn_for: Inputs of the model's usual size: calibration data is drawn for these, so that
            one file serves all batch sizes.
        inputs: Real inputs that the user named; they calibrate too, unless the recipe has its own.
        seed: Seed of drawn values.
        custom_ops: Custom operator libraries that the model needs.
    """
    own = precision_of(model)
    as_it_is = Variant(
        precision=precision, path=model.path, digest=model.digest, size_bytes=model.size_bytes
    )
    if precision == "native":
        return PlannedVariant(variant=as_it_is)
    if model.path.lower().endswith(ORT):
        return PlannedVariant(variant=as_it_is, refusal=_no_source(precision))
    recipe = recipes[precision]
    if recipe.base == own and not (recipe.nodes_to_exclude or recipe.block_list):
        # The file has this precision already.
        if not recipe.simplify:
            return PlannedVariant(variant=as_it_is)
        recipe = replace(recipe, base="simplified")
    # Nothing of the file is known before it is made.
    variant = Variant(
        precision=precision, path="", digest="", size_bytes=0, recipe=recipe.settings()
    )
    refusal = _refusal(model, own, recipe)
    calibration: tuple[tuple[InputSpec, ...], ...] = ()
    data = Path(recipe.calibration_data) if recipe.calibration_data else inputs
    if refusal is None and recipe.base == "int8-static" and data is not None:
        try:
            calibration = stored_sets(model, data)
        except (UsageError, OSError) as error:
            refusal = _no_calibration(error, recipe)
    if inputs is not None and _among(inputs, calibration):
        variant = replace(variant, on_calibration=True)
    conversion = Conversion(
        recipe=recipe,
        source=model.path,
        digest=model.digest,
        size_bytes=model.size_bytes,
        own_precision=own,
        inputs=tuple(drawn_for),
        calibration=calibration,
        seed=seed,
        custom_ops=custom_ops,
        external_files=model.external_files,
    )
    return PlannedVariant(variant=variant, conversion=conversion, refusal=refusal)


def _among(inputs: Path, calibration: Sequence[Sequence[InputSpec]]) -> bool:
    """Whether the inputs that are measured calibrate, too."""
    measured = inputs.resolve()
    files = {Path(spec.path).resolve() for specs in calibration for spec in specs}
    return any(measured in (file, *file.parents) for file in files)


def _no_calibration(error: UsageError | OSError, recipe: Recipe) -> Failure:
    """Say what is wrong with calibration data, and which setting names it."""
    place, key = "--ort-inputs", ""
    if recipe.calibration_data:
        place = f"[tool.ortbench.precisions.{recipe.name}]"
        key = f" calibration_data = {recipe.calibration_data!r}"
    return case_failure(
        f"{place}{key}: {error.message if isinstance(error, UsageError) else error}",
        error.hint if isinstance(error, UsageError) else "",
        phase="convert",
    )


def _no_source(precision: str) -> Failure:
    return case_failure(
        f"{precision} can't be made from a file in ONNX Runtime's own format (.ort)",
        f"Name the .onnx file that this file was made from. If you do not have it, leave "
        f"{precision} out of --ort-precisions",
        phase="convert",
    )


def _refusal(model: Model, own: str, recipe: Recipe) -> Failure | None:
    """What is known without running anything: quantised files, and files without float weights."""
    if recipe.base == "cleaned" and not model.weights_as_inputs:
        return _without_change(recipe, "no weight can be overridden by an input")
    if recipe.base in GRAPH_BASES:
        return None
    if own in ("int8", "int4"):
        shown = ", ".join(
            f"{count} {name}" for name, count in model.op_types.items() if "uant" in name
        )
        return case_failure(
            f"{recipe.name} can't be made from a file that is already quantised"
            + (f" ({shown})" if shown else ""),
            "Name the float model that the file was made from. If you do not have it, leave "
            f"{recipe.name} out of --ort-precisions",
            phase="convert",
        )
    floats = {"float", "float16", "bfloat16", "double"} & model.weight_types.keys()
    if not floats and recipe.base not in ("fp16", "bf16"):
        return _without_change(recipe, "the model stores no float tensors")
    return None


def _without_change(recipe: Recipe, why: str) -> Failure:
    return case_failure(
        f"{recipe.name} would change nothing: {why}",
        f"Leave {recipe.name} out of --ort-precisions for this model",
        phase="convert",
    )


def fed_to(
    planned: PlannedVariant, inputs: Sequence[InputSpec], recipes: Mapping[str, Recipe]
) -> tuple[InputSpec, ...] | Failure:
    """Return the inputs of a case as its variant declares them: the same values in its types.

    Args:
        planned: The variant.
        inputs: Inputs of the model itself.
        recipes: What can be made.
    """
    if planned.model is not None:
        return _of_own(planned.model, planned.variant.precision, inputs)
    recipe = recipes.get(planned.variant.precision) if planned.conversion is not None else None
    if recipe is None or recipe.keep_io_types or recipe.base not in (*_HALF, "fp32"):
        return tuple(inputs)
    wanted = _HALF.get(recipe.base, "tensor(float)")
    return tuple(spec.typed(wanted) for spec in inputs)


def _of_own(
    model: Model, name: str, inputs: Sequence[InputSpec]
) -> tuple[InputSpec, ...] | Failure:
    by_name = {spec.name: spec for spec in inputs}
    fed = []
    for info in model.inputs:
        spec = by_name.get(info.name)
        if spec is None:
            if info.optional:
                continue
            return case_failure(
                f"{Path(model.path).name}, the variant {name!r} of the model, needs the input "
                f"{info.name!r}, but the model itself takes {', '.join(map(repr, by_name))}",
                "Export both files with the same input names",
            )
        fed.append(spec.typed(info.type))
    return tuple(fed)


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
        feed = feed_of(ModelAxes(case.model), self.batch, self.sizes, path)
        return feed if isinstance(feed, Failure) else fed_to(self.made, feed, self.recipes)


def feed_of(
    axes: ModelAxes, batch: int | None, sizes: Mapping[str, int], inputs: Path | None
) -> tuple[InputSpec, ...] | Failure:
    """Inputs of one shape, or why this model can't have it: its other shapes go on."""
    try:
        return inputs_at(axes, batch=batch, dims=sizes, inputs_path=inputs)
    except RefusedCombination as refused:
        return refused.failure
    except ModelError as error:
        return Failure(kind="error", phase="inputs", message=error.message, hint=error.hint)
