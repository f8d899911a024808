"""Models × targets × precisions × batch sizes × dimensions × knobs → cases.

Nothing runs here: the plan is the same for a dry run and a real one. A combination that can't run
as it was asked stays in the plan with its refusal, so that it becomes a row like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.graph_capture import captures_graph
from pytest_ortbench.core.model import Model, Variant
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import BASES, Conversion, Recipe
from pytest_ortbench.core.run import Skip
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.compiled import compiled_refusal, compiled_skips, why_unplanned
from pytest_ortbench.planning.decoder_notes import PlanNote, configuration_notes, near_decoder_skips
from pytest_ortbench.planning.endpoints import writes_texts
from pytest_ortbench.planning.engines import (
    carries_out,
    engine_refusal,
    engine_skips,
    engines_named,
    provider_refusal,
)
from pytest_ortbench.planning.example_inputs import fed_from_file
from pytest_ortbench.planning.feeds import Workload, check_dims, named_by
from pytest_ortbench.planning.first_steps import FedBeside, fed_beside, refuse_several_files
from pytest_ortbench.planning.fixed_sizes import fixing_refusal, with_fixed_sizes
from pytest_ortbench.planning.generations import shapes_of, with_cache_sizes
from pytest_ortbench.planning.own_data import (
    OwnData,
    boxed_data,
    own_data,
    prepare,
    refuse_unlabelled,
)
from pytest_ortbench.planning.provider_options import (
    check_allowed,
    refuse_capture,
    refuse_session,
    with_options_of_links,
)
from pytest_ortbench.planning.real_inputs import with_contents
from pytest_ortbench.planning.recipes import shipped_recipe
from pytest_ortbench.planning.request import Combination, PlanRequest, combinations_of
from pytest_ortbench.planning.sizes import ModelAxes
from pytest_ortbench.planning.tuning import refuse_without_search, tuned
from pytest_ortbench.planning.unreadable import UnreadableModel
from pytest_ortbench.planning.variants import (
    Feeding,
    OwnVariant,
    PlannedVariant,
    fed_to,
    feed_of,
    own_variant,
    variant_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One runtime and the providers to measure in it.

    Attributes:
        runtime: Where.
        providers: On what.
        refusal: Why nothing can be measured there; ``None`` if it can be started.
        lacking: Why engines of language models can't be used there, by their names.
    """

    runtime: Runtime
    providers: tuple[Provider, ...]
    refusal: Failure | None = None
    lacking: Mapping[str, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Planned:
    """One case of a plan.

    Attributes:
        case: What is measured.
        refusal: Why it can't be, known without running anything; ``None`` for one that runs.
        conversion: What makes the file of its variant; ``None`` where the file is there.
        feeding: How it can be fed something else; ``None`` for a case that nothing can be fed to.
        own_inputs: Its inputs by the defaults of its own model, where a gate feeds it as another
            one; empty otherwise.
    """

    case: Case
    refusal: Failure | None = None
    conversion: Conversion | None = None
    feeding: Feeding | None = None
    own_inputs: tuple[InputSpec, ...] = ()

    def __repr__(self) -> str:
        """Return its name: reports of other plugins show the parameters of tests."""
        return "+".join(self.case.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All cases of one matrix, what was left out, and what is to be said of the models."""

    entries: tuple[Planned, ...]
    skips: tuple[Skip, ...] = ()
    notes: tuple[PlanNote, ...] = ()


def build_plan(
    request: PlanRequest,
    models: Sequence[Model | UnreadableModel],
    targets: Sequence[Target],
    skips: Iterable[Skip] = (),
    *,
    recipes: Mapping[str, Recipe] | None = None,
    own: Mapping[str, Sequence[OwnVariant]] | None = None,
) -> Plan:
    """Build the matrix.

    Args:
        request: The axes.
        models: Models as resolved, unreadable ones among them.
        targets: Runtimes with their providers.
        skips: What was already left out (providers under ``all``).
        recipes: Precisions that can be made, by name; ``None`` for those that ship.
        own: Variants of the user's, by the name of their model.

    Raises:
        UsageError: for a dimension that no model has, a batch of size 0, or a session option that
            does not exist.
    """
    request, data = _with_own_data(request)
    models = [
        with_cache_sizes(model, request.dims) if isinstance(model, Model) else model
        for model in models
    ]
    readable = [model for model in models if isinstance(model, Model)]
    check_dims(request.dims, readable)
    for entry in PASSES:
        if entry.check_plan:
            entry.load(entry.check_plan)(request, readable)
    points = list(combinations_of(request))
    providers = [provider for target in targets for provider in target.providers]
    check_allowed(providers, [point.session for point in points])
    refuse_without_search(request.tuning, providers)
    makers = _Makers(recipes=_shipped() if recipes is None else recipes, own=own or {}, data=data)
    left_out = [*skips, *makers.absent(readable, request.precisions)]
    lacking = {target.runtime.label: target.lacking for target in targets}
    left_out += (*engine_skips(readable, lacking, request), *near_decoder_skips(readable, request))
    for target in targets:
        left_out += compiled_skips(readable, target.providers, request, target.runtime.label)
    entries: list[Planned] = []
    for model in models:
        if isinstance(model, UnreadableModel):
            entries += _unreadable(model, targets, request)
        else:
            entries += _cases_of(model, request, targets, points, makers)
    # A batch size that is set as a dimension makes the values of the batch axis one case.
    entries = list({planned.case.key: planned for planned in entries}.values())
    notes = configuration_notes(readable, request)
    return Plan(entries=tuple(entries), skips=tuple(left_out), notes=tuple(notes))


def with_inputs(planned: Planned, path: Path) -> Planned:
    """Return the case fed from the file or folder at ``path`` instead.

    That may lift the refusal of other inputs, and no other one: not that of a runtime that can't
    be had, nor that of a file that can't be made.
    """
    feeding = planned.feeding
    if feeding is None or feeding.refusal is not None:
        return planned
    feed = feeding.from_files(planned.case, path)
    if isinstance(feed, Failure):
        return replace(planned, refusal=feed)
    case = with_fixed_sizes(replace(planned.case, inputs=feed))
    return replace(planned, case=with_contents(case), refusal=fixing_refusal(case))


def _cases_of(
    model: Model,
    request: PlanRequest,
    targets: Sequence[Target],
    points: Sequence[Combination],
    makers: _Makers,
) -> Iterator[Planned]:
    axes = ModelAxes(model)
    placers = [entry.load(entry.place_in_case) for entry in PASSES if entry.place_in_case]
    targets = [target for target in targets if target.providers]
    variants = makers.variants(axes, request) if targets else ()
    shapes = shapes_of(axes, request, [p for target in targets for p in target.providers])
    writes_somewhere = any(preset and preset.generation for _, preset in shapes)
    # Inputs depend on sizes only, so that every provider and precision is fed the same.
    at_sizes = {
        batch: [_sized(axes, batch, dims, preset, request, makers.data) for dims, preset in shapes]
        for batch in dict.fromkeys(point.batch for point in points)
    }
    for made, target in itertools.product(variants, targets):
        fed = {
            batch: [sized.fed_to(made, makers.recipes) for sized in row]
            for batch, row in at_sizes.items()
        }
        for provider, search in (
            position
            for asked in target.providers
            for position in tuned(
                with_options_of_links(asked, request.provider_options), request.tuning
            )
        ):
            graph = {"graph": "captured"} if captures_graph(provider) else {}
            for place, point in itertools.product(range(len(shapes)), points):
                sized, feed = at_sizes[point.batch][place], fed[point.batch][place]
                can_write = point.is_plain and carries_out(provider, sized.engine, model)
                if sized.generation is not None and not can_write:
                    continue
                if sized.generation is None and writes_texts(provider) and writes_somewhere:
                    continue
                lack = target.lacking.get(sized.engine)
                if lack is not None and not engines_named(request):
                    continue
                file = made.model or model
                if why_unplanned(file, provider, request, compiled=point.compiled):
                    continue
                case = Case(
                    model=model,
                    variant=made.variant,
                    provider=provider,
                    runtime=target.runtime,
                    session=point.session,
                    batch=sized.batch,
                    dims=sized.dims,
                    knobs={**sized.knobs, **graph, **search, **point.knobs},
                    inputs=() if isinstance(feed, Failure) else feed,
                    concurrency=point.concurrency,
                    sessions=point.sessions,
                    call=point.call,
                    io=point.io,
                    sampling=request.sampling,
                    seed=request.seed,
                    dataset=sized.labelled,
                    no_batch=axes.no_batch(sized.batch),
                    generation=sized.generation,
                    encoder_inputs=sized.beside.encoder_inputs,
                    first_inputs=sized.beside.first_inputs,
                    compiled=point.compiled,
                )
                for placer in placers:
                    case = placer(case, request.of_passes)
                case = with_fixed_sizes(case)
                standing = (
                    target.refusal
                    or made.refusal
                    or sized.refusal
                    or provider_refusal(case)
                    or compiled_refusal(case, file)
                    or refuse_several_files(case)
                    or lack
                    or refuse_capture(provider, point.io, case.concurrency, case.sessions)
                    or refuse_session(provider, point.session, target.providers)
                )
                refused = feed if isinstance(feed, Failure) else fixing_refusal(case)
                yield Planned(
                    case=with_contents(case),
                    refusal=standing or refused,
                    conversion=made.conversion,
                    feeding=Feeding(
                        sizes=sized.sizes,
                        batch=sized.asked,
                        made=made,
                        recipes=makers.recipes,
                        refusal=standing,
                    ),
                )


def _with_own_data(request: PlanRequest) -> tuple[PlanRequest, OwnData | None]:
    """The request without photos, sounds or texts, and these; one folder serves for everything.

    Raises:
        UsageError: for labels without files, and for files that are to be scored without labels.
    """
    scored = request.dataset
    if scored is not None and scored.boxes is not None:
        boxed = boxed_data(request.inputs, request.labels, request.preprocess, scored)
        return replace(request, inputs=None, dataset=None), boxed
    folder = None
    if scored is not None and not scored.function and Path(scored.path).suffix.lower() != ".npz":
        folder = Path(scored.path)
    path = request.inputs or folder
    if folder is not None:
        refuse_unlabelled(folder, path, request.labels)
    data = own_data(path, request.labels, request.preprocess, with_inputs=bool(request.inputs))
    if data is None:
        return request, None
    return replace(request, inputs=None, dataset=None if folder else request.dataset), data


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sized:
    """A model at one batch and one set of sizes, whatever its precision and provider.

    Attributes:
        asked: The batch that was asked for, or that a file holds; ``None`` for neither.
        batch: The batch that is really fed.
        sizes: Sizes by symbol: those that the user set and those of the workload.
        dims: Those of them that stand in the id.
        knobs: The workload, where there are several.
        feed: The inputs of the model itself, or why it can't have them.
        labelled: Labelled data that fits them.
        generation: The request that is timed, ``None`` where single inferences are.
        refusal: Why the workload can't be measured; ``None`` if it can.
        beside: What the other files that a request runs are fed.
    """

    asked: int | None
    batch: int
    sizes: dict[str, int]
    dims: dict[str, int]
    knobs: dict[str, str]
    feed: tuple[InputSpec, ...] | Failure
    labelled: Dataset | None
    generation: Generation | None = None
    refusal: Failure | None = None
    beside: FedBeside = field(default_factory=FedBeside)

    @property
    def engine(self) -> str:
        """What carries the request out; empty for an inference."""
        return self.generation.engine if self.generation is not None else ""

    def fed_to(
        self, made: PlannedVariant, recipes: Mapping[str, Recipe]
    ) -> tuple[InputSpec, ...] | Failure:
        """Return the inputs as a variant takes them."""
        return self.feed if isinstance(self.feed, Failure) else fed_to(made, self.feed, recipes)


def _sized(
    axes: ModelAxes,
    asked: int | None,
    dims: Mapping[str, int],
    preset: Workload | None,
    request: PlanRequest,
    data: OwnData | None,
) -> _Sized:
    sizes = {**dims, **(preset.dims if preset is not None else {})}
    request, asked = fed_from_file(request, axes, asked, sizes, has_data=data is not None)
    feed, labelled = _feed(axes, asked, sizes, request, data)
    batch = axes.batch_of(asked, dims)
    generation = preset.generation if preset is not None else None
    beside = FedBeside()
    if generation is not None:
        beside = fed_beside(axes.model, batch=batch, sizes=sizes)
        generation = replace(generation, sound_s=beside.sound_s)
    return _Sized(
        asked=asked,
        batch=batch,
        sizes=sizes,
        # A size of the batch axis stands in the id as the batch, however it was set.
        dims={
            name: size
            for name, size in dims.items()
            if name not in axes.batch_axis.symbols or size != batch
        },
        knobs=preset.knobs if preset is not None else {},
        feed=named_by(preset, feed),
        labelled=labelled,
        generation=generation,
        refusal=beside.refusal or _refusal(axes.model, preset, batch),
        beside=beside,
    )


def _refusal(model: Model, preset: Workload | None, batch: int) -> Failure | None:
    if preset is None or preset.refusal is not None:
        return None if preset is None else preset.refusal
    if preset.generation is None or model.decoder is None:
        return None
    return engine_refusal(model.decoder, preset.generation, batch)


def _feed(
    axes: ModelAxes,
    batch: int | None,
    sizes: Mapping[str, int],
    request: PlanRequest,
    data: OwnData | None,
) -> tuple[tuple[InputSpec, ...] | Failure, Dataset | None]:
    """Inputs of one shape, and the labelled data that fits it."""
    feed = feed_of(axes, batch, sizes, request.inputs)
    if data is None or isinstance(feed, Failure):
        return feed, request.dataset
    prepared = prepare(data, axes.model, feed, axes.batch_of(batch, sizes))
    feed = feed_of(axes, batch, sizes, prepared.inputs)
    if not isinstance(feed, Failure):
        feed = prepared.told(feed)
    if prepared.labelled is None:
        return feed, request.dataset
    return feed, prepared.labelled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Makers:
    """What stands for a model at each precision."""

    recipes: Mapping[str, Recipe]
    own: Mapping[str, Sequence[OwnVariant]]
    data: OwnData | None = None

    def variants(self, axes: ModelAxes, request: PlanRequest) -> list[PlannedVariant]:
        """The variants of a model in the order asked; its own ones too if none is named."""
        model = axes.model
        own = {variant.name: variant for variant in self.own.get(model.name, ())}
        names = list(request.precisions)
        if request.precisions == ("native",):
            names += own
        made = any(name not in own and name != "native" for name in names)
        drawn_for = _usual_inputs(axes, request) if made else ()
        inputs = request.inputs
        if self.data is not None and made and drawn_for:
            inputs = prepare(self.data, model, drawn_for, axes.batch_of(None, {})).calibration
        return [
            own_variant(own[name], model)
            if name in own
            else variant_of(
                model,
                name,
                self.recipes,
                drawn_for=drawn_for,
                inputs=inputs,
                seed=request.seed,
                custom_ops=request.custom_ops,
            )
            for name in names
            if name in own or name == "native" or name in self.recipes
        ]

    def absent(self, models: Sequence[Model], names: Sequence[str]) -> Iterator[Skip]:
        """Own variants that were named and that some model does not have."""
        variants = {variant.name for group in self.own.values() for variant in group}
        for name in names:
            if name in self.recipes or name not in variants:
                continue
            for model in models:
                if name not in {variant.name for variant in self.own.get(model.name, ())}:
                    yield Skip(
                        what=f"{model.name} × {name}", reason="the model has no such variant"
                    )


def _usual_inputs(axes: ModelAxes, request: PlanRequest) -> tuple[InputSpec, ...]:
    """Inputs of the usual size, drawn: one file calibrated on them serves all sizes of the plan."""
    for batch in (None, *request.batch_sizes):
        feed = feed_of(axes, batch, {}, None)
        if not isinstance(feed, Failure):
            return feed
    return ()


def _shipped() -> dict[str, Recipe]:
    return {base: shipped_recipe(base) for base in BASES}


def _unreadable(
    model: UnreadableModel, targets: Sequence[Target], request: PlanRequest
) -> Iterator[Planned]:
    failure = model.failure or Failure(kind="error", phase="inputs", message=model.message)
    for target in targets:
        for provider, precision in itertools.product(target.providers, request.precisions):
            case = Case(
                model=model.stand_in,
                variant=Variant(precision=precision, path=model.path, digest="", size_bytes=0),
                provider=provider,
                runtime=target.runtime,
                batch=next(iter(request.batch_sizes), 1),
                sampling=request.sampling,
            )
            yield Planned(case=case, refusal=failure)
