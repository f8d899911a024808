"""From a request to its plan: models are resolved, runtimes asked what they have.

Earlier states of model files are called and fed as what became of them. A name may come from a
catalogue, from the configuration, or from the other models of the plan; so a file as it was at a
revision can't find its own. Nor does the catalogue say of it what sizes and values it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import ModelError, NoModelError, UsageError, WorkerError
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.ids import model_part
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.run import Skip
from pytest_ortbench.core.source import KeptExport
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.models.catalogue import project_catalogue, project_start, shipped_catalogue
from pytest_ortbench.models.missing import advice_on
from pytest_ortbench.models.naming import Naming
from pytest_ortbench.models.resolve import shipped_names
from pytest_ortbench.models.sources import named_source
from pytest_ortbench.models.symbols import named_shapes
from pytest_ortbench.models.told_sizes import told_sizes
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.planning.described import described
from pytest_ortbench.planning.endpoints import refuse_several, with_endpoint
from pytest_ortbench.planning.engines import engines_lacking, may_use_genai
from pytest_ortbench.planning.exports import EXPORTS_FOLDER, Exports
from pytest_ortbench.planning.families import families
from pytest_ortbench.planning.family_models import Resolved, resolve
from pytest_ortbench.planning.matrix import Plan, Target, build_plan
from pytest_ortbench.planning.recipes import check_precisions, recipes
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.transformers_sources import with_transformers
from pytest_ortbench.planning.unreadable import UnreadableModel
from pytest_ortbench.runtimes.plugin_config import configured_plugins


class Planner:
    """Makes plans; what it learns about models and runtimes is shared by all plans of a run.

    Args:
        launcher: Asks the runtimes.
        root: Folder that paths of models start at.
        named_from: Folder that names of models start at; by default ``root``.
        runtimes: Where to measure.
        notify: Told what is fetched.
        failures: Why some of the runtimes can't be started, by label: their cases are refused.
        candidates: Decides on providers; by default with the plug-ins that the project in ``root``
            has configured, remembering what it tried in the user's cache.
    """

    def __init__(
        self,
        launcher: Launcher,
        root: Path,
        *,
        runtimes: Sequence[Runtime],
        notify: Callable[[str], None],
        failures: Mapping[str, Failure] | None = None,
        candidates: Candidates | None = None,
        named_from: Path | None = None,
    ) -> None:
        self._launcher = launcher
        self._root = root
        start = self._start = project_start(root, named_from or root)
        self._candidates = candidates or Candidates.remembering(
            launcher, cache_folder(), configured_plugins(start)
        )
        self._runtimes = tuple(self._candidates.equip(runtime) for runtime in runtimes)
        self._notify = notify
        self._exports_by: dict[tuple[tuple[str, str], ...], Exports] = {}
        self._exports = self._exports_with({})
        self._failures = failures or {}
        self._custom_ops: tuple[str, ...] = ()
        self._models: dict[tuple[str, ...], Resolved] = {}
        self._paths: dict[str, str] = {}
        self._recipes = recipes(start)
        self._families = families(start)
        self._naming = Naming(
            root=named_from or root,
            taken={*shipped_names(), *project_catalogue(start), *self._families},
        )
        self._targets: dict[tuple[str, ...], tuple[list[Target], list[Skip]]] = {}

    def plan(
        self,
        request: PlanRequest,
        later: Mapping[str, Model] | None = None,
        originals: Mapping[str, Path] | None = None,
    ) -> Plan:
        """Build the plan of ``request``.

        Args:
            request: The axes.
            later: What earlier states of files became, by their paths: these bear the names of
                those, and are fed as they are.
            originals: Files that copies stand for, by the path of the copy.

        Raises:
            UsageError: if a specification or a provider option can't be understood.
        """
        request = with_endpoint(request)
        self._candidates.check(request.provider_options, root=self._start)
        self._custom_ops = request.custom_ops
        self._exports = self._exports_with(request.exporter)
        if request.made:
            resolved = self._made(request)
        else:
            resolved = self._resolve(request.models, originals or {})
        refuse_several(resolved.models, request)
        targets, skips = self._expand(request.providers)
        readable = [model for model in resolved.models if isinstance(model, Model)]
        if may_use_genai(readable, request):
            targets = [self._with_engines(target) for target in targets]
        check_precisions(
            request.precisions,
            place="the requested precisions",
            known=self._recipes,
            variants=tuple(name for f in self._families.values() for name in f.variants),
            root=self._start,
        )
        providers = [provider for target in targets for provider in target.providers]
        with_folders = with_transformers(resolved.models, request, providers)
        return build_plan(
            request,
            named_as_later(with_folders, later or {}),
            targets,
            skips,
            recipes=self._recipes,
            own=resolved.own,
        )

    def place_of(self, path: Path) -> str:
        """Return where a file or folder lies, as the places of models say it."""
        return self._naming.place_of(path)

    def exported(
        self, spec: str, *, place: str, settings: Mapping[str, str] | None = None
    ) -> KeptExport:
        """Return the export of a source, made if it is not there yet.

        Args:
            spec: The source, as written.
            place: Where it was written.
            settings: Of the exporter, by its own names.

        Raises:
            UsageError: if it names no source.
            ModelError: if it can't be exported, or must not be loaded.
        """
        source = named_source(spec, self._root)
        if source is None:
            path = self._root / in_home(spec)
            if not path.exists():
                raise NoModelError(
                    f"{spec!r} does not exist",
                    spec=spec,
                    place=place,
                    hint=advice_on(spec, path, {}),
                )
            is_onnx = path.suffix.lower() in (".onnx", ".ort")
            raise UsageError(
                f"{spec!r} is an ONNX model already, and this command makes ONNX models of others"
                if is_onnx
                else f"no ONNX model can be exported from {spec!r}",
                place=place,
                hint="To change its opset, use onnx.version_converter. To export it again, name "
                "its source, e.g. net.py:build"
                if is_onnx
                else "Write a function of Python that returns the model, and name it, e.g. "
                f"{path.stem}.py:build",
            )
        if source.refusal:
            raise ModelError(source.refusal, place=spec)
        return self._exports_with(settings or {}).obtain(source.path, source.function)

    def _exports_with(self, settings: Mapping[str, str]) -> Exports:
        """Return what exports under settings of the user's: the same for all plans with these."""
        key = tuple(sorted(settings.items()))
        if key not in self._exports_by:
            self._exports_by[key] = Exports(
                launcher=self._launcher,
                folder=cache_folder() / EXPORTS_FOLDER,
                runtimes=self._runtimes,
                notify=self._notify,
                settings=settings,
            )
        return self._exports_by[key]

    def check_options(self, options: Mapping[str, Mapping[str, str]], *, place: str) -> None:
        """Check provider options by alias.

        Raises:
            UsageError: for an option that the provider doesn't document.
        """
        self._candidates.check(options, root=self._start, place=place)

    def _resolve(self, specs: tuple[str, ...], originals: Mapping[str, Path]) -> Resolved:
        settings = sorted(self._exports.settings.items())
        asked = (*specs, *(f"{key}={value}" for key, value in settings))
        if asked not in self._models:
            resolved = resolve(
                specs,
                self._families,
                root=self._root,
                notify=self._notify,
                naming=replace(self._naming, originals=originals),
                describe=self._describe,
                export=self._exports.obtain,
            )
            for model in resolved.models:
                self._refuse_namesake(model)
            self._models[asked] = resolved
        return self._models[asked]

    def _made(self, request: PlanRequest) -> Resolved:
        """The one model that a test made, read now: another may lie there soon."""
        resolved = resolve(
            request.models,
            self._families,
            root=self._root,
            notify=self._notify,
            naming=self._naming,
            describe=self._describe,
            export=self._exports.obtain,
        )
        if len(resolved.models) != 1:
            raise UsageError(
                f"{request.models[0]!r} stands for {len(resolved.models)} models, but one "
                "call measures one model",
                place="ortbench.measure",
                hint="Pass the path of one model file",
            )
        model = resolved.models[0]
        if isinstance(model, UnreadableModel):
            return Resolved(models=[replace(model, name=request.made, is_made=True)], own={})
        source = f"test:{request.made}"
        model = replace(model, name=request.made, source=source, place="", is_made=True)
        return Resolved(models=[model], own={})

    def _refuse_namesake(self, model: Model | UnreadableModel) -> None:
        """Refuse a model that is called as another one: only names of the configuration can be."""
        spelling = model_part(model.name)
        other = self._paths.setdefault(spelling, model.path)
        if other != model.path:
            raise UsageError(
                f"{other} and {model.path} are both called {model.name!r}",
                place="the requested models",
                hint="Rename the entry of pyproject.toml or catalogue.toml that gives this name",
            )

    def _describe(self, model: Model) -> Model:
        return described(model, self._launcher, self._custom_ops)

    def _expand(self, specs: tuple[str, ...]) -> tuple[list[Target], list[Skip]]:
        if specs not in self._targets:
            targets: list[Target] = []
            skips: list[Skip] = []
            for runtime in self._runtimes:
                failure = self._failures.get(runtime.label)
                ask = self._candidates.providers if failure is None else self._candidates.stand_in
                providers, left_out = ask(runtime, specs)
                target = Target(runtime=runtime, providers=tuple(providers), refusal=failure)
                targets.append(target)
                skips += left_out
            self._targets[specs] = (targets, skips)
        return self._targets[specs]

    def _with_engines(self, target: Target) -> Target:
        """Return a target that says which engines of language models it lacks."""
        if target.refusal is not None:
            return target
        try:
            info = self._candidates.inspect(target.runtime)
        except WorkerError:
            return target  # its cases tell
        return replace(target, lacking=engines_lacking(target.runtime, info))


def named_as_later(
    models: Sequence[Model | UnreadableModel], later: Mapping[str, Model]
) -> list[Model | UnreadableModel]:
    """Give earlier states the names of what they became.

    Args:
        models: As they were read.
        later: What they became, by the path of the earlier state; others stay as they are.
    """
    return [
        _as_later(model, later[model.path]) if model.path in later else model for model in models
    ]


def _as_later(model: Model | UnreadableModel, later: Model) -> Model | UnreadableModel:
    if isinstance(model, UnreadableModel):
        return replace(model, name=later.name)
    # What a catalogue says of the present file by its digest, it says of no other one.
    known_by_digest = later.digest in {entry.sha256 for entry in shipped_catalogue().values()}
    of_name = {} if known_by_digest else later.default_dims
    is_same = _takes_the_same(model.inputs, later.inputs)
    names = _later_symbols(model.inputs, later.inputs) if is_same else {}
    model = replace(
        model,
        name=later.name,
        reference=later.reference,
        default_dims={**_renamed(model.default_dims, names), **of_name},
        workloads=later.workloads,
        # Configurations beside it belong to the working tree.
        told_sizes={**told_sizes(Path(later.path), {}), **model.told_sizes},
    )
    if not is_same:
        return model
    infos = zip(model.inputs, later.inputs, strict=True)
    is_decoder = model.decoder is not None and later.decoder is not None
    implied = later.implied_dims if is_decoder else _renamed(model.implied_dims, names)
    return replace(
        model,
        inputs=tuple(_info_as_later(before, after, names) for before, after in infos),
        implied_dims=implied,
        decoder=later.decoder if model.decoder is not None else None,
    )


def _later_symbols(before: Sequence[TensorInfo], after: Sequence[TensorInfo]) -> dict[str, str]:
    """What the symbols of an earlier state are called later, by their places."""
    return {
        earlier: later
        for sizes, others in zip(named_shapes(before), named_shapes(after), strict=True)
        for earlier, later in zip(sizes or (), others or (), strict=True)
        if isinstance(earlier, str) and isinstance(later, str)
    }


def _renamed(sizes: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    return {names.get(symbol, symbol): size for symbol, size in sizes.items()}


def _info_as_later(before: TensorInfo, after: TensorInfo, names: Mapping[str, str]) -> TensorInfo:
    """An input called and valued as later, with what its own graph says of its axes."""
    roles = (replace(role, tied_to=names.get(role.tied_to, role.tied_to)) for role in before.roles)
    return replace(
        after,
        roles=tuple(roles),
        batch_axis=before.batch_axis,
        length_axis=before.length_axis,
    )


def _takes_the_same(inputs: Sequence[TensorInfo], others: Sequence[TensorInfo]) -> bool:
    """Whether both take the same tensors, whatever their symbols are called."""
    return [_fixed(info) for info in inputs] == [_fixed(info) for info in others]


def _fixed(info: TensorInfo) -> tuple[str, str, tuple[int | None, ...] | None]:
    sizes = info.shape
    if sizes is not None:
        sizes = tuple(size if isinstance(size, int) else None for size in sizes)
    return info.name, info.type, sizes
