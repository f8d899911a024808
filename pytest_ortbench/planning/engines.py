"""What carries requests of language models out, where: our own loop, or onnxruntime-genai."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import (
    GRAPH_OPT,
    SPIN,
    Case,
    Provider,
    Runtime,
    SessionConfig,
)
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.generation import (
    FILE_ENGINES,
    FRAMEWORK_ENGINES,
    GENERATE,
    MOST_AT_ONCE,
    Decoder,
    Generation,
)
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.run import Skip
from pytest_ortbench.core.session_entries import NO_COMPILE, SPINNING
from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.models.attention import GROUPED
from pytest_ortbench.planning.endpoints import endpoint_refusal, writes_texts
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.transformers_sources import why_no_folder

SESSION, GENAI = FILE_ENGINES
#: The distribution, and what the names of those for other hardware begin with.
_PACKAGE = "onnxruntime-genai"


def engines_for(decoder: Decoder, request: PlanRequest) -> tuple[str, ...]:
    """Return the engines that a model's file is measured under: those asked for, else what fits it.

    Args:
        decoder: Of the model.
        request: What was asked for.
    """
    asked = engines_named(request)
    if asked:
        return asked
    return (GENAI, SESSION) if decoder.folder else (SESSION,)


def engines_named(request: PlanRequest) -> tuple[str, ...]:
    """Return the engines that were asked for and that run an ONNX file."""
    return tuple(engine for engine in request.engines if engine in FILE_ENGINES)


def all_engines_for(
    model: Model, request: PlanRequest, providers: Iterable[Provider]
) -> tuple[str, ...]:
    """Return the engines that a model is measured under on any of some providers.

    Args:
        model: One that writes.
        request: What was asked for.
        providers: What runs it: execution providers and frameworks.
    """
    if model.decoder is None:
        return ()
    asked = tuple(engine for engine in request.engines if engine in FRAMEWORK_ENGINES)
    known = (*engines_for(model.decoder, request), *(asked or (GENERATE,)))
    return tuple(
        engine
        for engine in known
        if any(carries_out(provider, engine, model) for provider in providers)
    )


def carries_out(provider: Provider, engine: str, model: Model) -> bool:
    """Return whether requests to a model are measured on a provider under an engine.

    A framework carries out those of a folder that its library loads, and of nothing else.

    Args:
        provider: An execution provider, an engine or a framework.
        engine: One of :data:`~pytest_ortbench.core.generation.ENGINES`.
        model: One that writes.
    """
    if provider.is_execution_provider:
        return engine in FILE_ENGINES
    if provider.is_endpoint:
        return engine == GENERATE and writes_texts(provider)
    kind = engine_kind(provider.alias)
    source = model.exported_from
    is_folder = source is None or bool(source.library)
    return engine in FRAMEWORK_ENGINES and kind is not None and bool(kind.writer) and is_folder


def may_use_genai(models: Iterable[Model], request: PlanRequest) -> bool:
    """Whether any model is to be measured under onnxruntime-genai, so that runtimes are asked.

    Args:
        models: Those of the plan.
        request: What was asked for.
    """
    if request.generate == "off":
        return False
    decoders = [model.decoder for model in models if model.decoder is not None]
    return any(decoder.folder and GENAI in engines_for(decoder, request) for decoder in decoders)


def engines_lacking(runtime: Runtime, info: RuntimeInfo) -> Mapping[str, Failure]:
    """Return why engines can't be used in a runtime, by their names.

    Args:
        runtime: Where.
        info: What it says of itself.
    """
    if not any(name.startswith(_PACKAGE) for name in info.distributions):
        installs = "To add it to your environment, run: pip install 'pytest-ortbench[genai]'. "
        is_own = runtime.label == Runtime().label
        kept = f"{installs}To leave your environment as it is, use" if is_own else "Use"
        return {
            GENAI: case_failure(
                f"{_PACKAGE} is not installed in runtime {runtime.label!r}",
                f"{kept} --ort-runtimes={_PACKAGE}, which makes an environment with the package"
                if is_own or not runtime.requirements
                else f"Use --ort-runtimes={shlex.quote(f'{runtime.label}+{_PACKAGE}')}",
                kind="unavailable",
                phase="import",
            )
        }
    if not runtime.shares_files:
        return {
            GENAI: case_failure(
                f"{_PACKAGE} reads the folder of the model from the disk of this machine, which "
                f"runtime {runtime.label!r} can't reach",
                "Measure the model in a runtime that shares files, e.g. --ort-runtimes=current. "
                f"To measure in {runtime.label!r}, use --ort-engines=session",
                phase="files",
            )
        }
    return {}


def engine_skips(
    models: Iterable[Model], lacking: Mapping[str, Mapping[str, Failure]], request: PlanRequest
) -> Iterator[Skip]:
    """Yield the engines that fit a model, that nobody named, and that a runtime lacks.

    Args:
        models: Those of the plan.
        lacking: Why engines can't be used, by the label of a runtime and their names.
        request: What was asked for.
    """
    if engines_named(request) or request.generate == "off":
        return
    for model, label in itertools.product(models, lacking):
        for engine in engines_for(model.decoder, request) if model.decoder is not None else ():
            failure = lacking[label].get(engine)
            if failure is not None:
                reason = f"{failure.message}. {failure.hint}"
                yield Skip(what=f"{model.name} × engine:{engine}", reason=reason, runtime=label)


def engine_refusal(decoder: Decoder, asked: Generation, batch: int) -> Failure | None:
    """Return why an engine can't carry a request out, wherever it is; ``None`` if it can.

    Args:
        decoder: Of the model.
        asked: The request.
        batch: Number of sequences.
    """
    if asked.engine != GENAI:
        return None
    if not decoder.folder:
        return case_failure(
            f"{_PACKAGE} needs a genai_config.json that names the model file, and none was found",
            f"To measure with {_PACKAGE}, name a folder with a genai_config.json. To measure "
            f"without {_PACKAGE}, use --ort-engines=session",
        )
    faults = [fault for fault in decoder.config_faults if fault.stops_genai]
    if faults:
        further = len(faults) - 1
        more = f" (and {counted(further, 'further fault')} in the file)" if further else ""
        return case_failure(
            f"{_PACKAGE} can't be used with this model, since {faults[0].told}{more}",
            f"{faults[0].remedy}. To measure without {_PACKAGE}, use --ort-engines=session",
        )
    if asked.depth and batch > 1:
        return case_failure(
            f"with earlier tokens in the cache (--ort-depth={asked.depth}), {_PACKAGE} reads a "
            f"prompt for one sequence only, but the batch size is {batch}",
            "Use --ort-batch-sizes=1. For several sequences, leave out --ort-depth",
        )
    return None


def provider_refusal(case: Case) -> Failure | None:
    """Return why a provider can't carry the request of a case out; ``None`` if it can.

    *Seen*: grouped-query attention on the CPU reads several tokens behind a cache for one sequence
    only.
    """
    if not case.provider.is_execution_provider:
        return _engine_refusal(case)
    asked = case.generation
    if asked is not None and asked.engine == GENAI and case.provider.then:
        return case_failure(
            f"{_PACKAGE} runs on one provider and can't use the chain {case.provider.label}",
            "To measure the chain, use --ort-engines=session. To measure with "
            f"{_PACKAGE}, name one provider, e.g. --ort-providers={case.provider.links[0].label}",
        )
    if asked is None or not asked.depth or case.batch == 1 or case.provider.name != CPU:
        return None
    if GROUPED not in case.model.op_types or (
        asked.prompt_tokens == 1 and asked.depth <= MOST_AT_ONCE
    ):
        return None
    return case_failure(
        f"with earlier tokens in the cache (--ort-depth={asked.depth}), the operator {GROUPED} "
        f"reads a prompt on the CPU for one sequence only, but the batch size is {case.batch}",
        "Use --ort-batch-sizes=1. For several sequences, leave out --ort-depth",
    )


def _engine_refusal(case: Case) -> Failure | None:
    """Return what was asked that only a session of ONNX Runtime has; ``None`` for nothing."""
    refusals = {"framework": _framework_refusal, "endpoint": endpoint_refusal}
    refusal = refusals.get(case.provider.role)
    unfit = None if refusal is None else refusal(case)
    if unfit is not None:
        return unfit
    title, session, plain = case.provider.name, case.session, SessionConfig()
    level = session.graph_optimization_level
    by_level = GRAPH_OPT in case.knobs and level != plain.graph_optimization_level
    asked = [
        option
        for option, is_asked in (
            ("--ort-io=device", case.io != "end-to-end"),
            ("--ort-calls=async", case.call != "sync"),
            ("--ort-graph-opt", by_level),
            ("--ort-spinning", SPIN in case.knobs),
            ("--ort-fix-dims=on", bool(session.fixed_dims)),
            ("--ort-compiled=on", case.compiled),
            ("--ort-custom-ops", bool(session.custom_ops)),
            ("--ort-session-option", _without_own_options(case) != plain),
        )
        if is_asked
    ]
    if not asked:
        return None
    return case_failure(
        f"{title} runs the model without a session of ONNX Runtime, so "
        f"{' and '.join(asked)} can't be used with the provider {case.provider.alias!r}",
        f"Measure {case.provider.alias!r} in a run without {' and '.join(asked)}",
    )


def _without_own_options(case: Case) -> SessionConfig:
    """The session without what has an option of its own."""
    session, plain = case.session, SessionConfig()
    own = {SPINNING: SPIN in case.knobs, NO_COMPILE: case.compiled}
    level = plain if GRAPH_OPT in case.knobs else session
    return replace(
        session,
        intra_op_num_threads=None,
        graph_optimization_level=level.graph_optimization_level,
        entries={key: value for key, value in session.entries.items() if not own.get(key)},
        custom_ops=(),
        fixed_dims={},
    )


def _framework_refusal(case: Case) -> Failure | None:
    """Return why a framework can't run what a model was exported from; ``None`` if it can."""
    source, kind = case.model.exported_from, engine_kind(case.provider.alias)
    alias = case.provider.alias
    if source is None and case.model.decoder is not None and kind is not None and kind.writer:
        return why_no_folder(case, kind)
    if source is None:
        return case_failure(
            f"the provider {alias!r} runs the code of a model, but "
            f"{Path(case.model.path).name!r} is an ONNX file",
            "To measure the code, name it in place of the file: FILE.py:FUNCTION. To measure the "
            f"file, leave {alias} out of --ort-providers",
        )
    if not case.runtime.shares_files:
        return case_failure(
            f"the provider {alias!r} runs the code that the model was exported from. This code is "
            f"on the disk of this machine, which runtime {case.runtime.label!r} can't see",
            "Measure the model in a runtime that shares files, e.g. --ort-runtimes=current",
        )
    if source.library and kind is not None and source.library not in kind.libraries:
        return case_failure(
            f"the provider {alias!r} does not run a model of {source.library}",
            f"In --ort-providers, write {source.framework} in place of {alias}",
        )
    if kind is None or kind.runs_models_of(source.framework):
        return None
    owner = engine_kind(source.framework)
    theirs = source.framework if owner is None else owner.title
    return case_failure(
        f"the model was exported from {theirs}, which the provider {alias!r} does not run",
        f"In --ort-providers, write {source.framework} in place of {alias}",
    )
