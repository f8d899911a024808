"""What is refused of compiled models, and what is left out where nobody named it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.provider_kinds import BY_NAME, CPU, WEBGPU
from pytest_ortbench.core.run import Skip
from pytest_ortbench.models.ort_file import is_ort_file
from pytest_ortbench.planning.request import PlanRequest

#: Providers that run node by node, with kernels, so that there is nothing to compile ahead.
_BY_KERNELS = frozenset(
    {CPU, WEBGPU, "CUDAExecutionProvider", "ROCMExecutionProvider", "XnnpackExecutionProvider"}
)
_WITHOUT = "Leave --ort-compiled out"


def compiled_refusal(case: Case, file: Model) -> Failure | None:
    """Return why a case can't have a compiled model, or not this one; ``None`` if it can.

    Args:
        case: As it is planned.
        file: The file that it runs, as it was read.
    """
    foreign = _foreign(file, case.provider)
    if foreign is not None or not case.compiled:
        return foreign
    if not case.runtime.shares_files:
        return _refused(
            "a compiled model is read from the disk of this machine, which runtime "
            f"{case.runtime.label!r} can't reach",
            "Measure the model in a runtime that shares files, e.g. --ort-runtimes=current. "
            f"To measure in {case.runtime.label!r}, leave --ort-compiled out",
        )
    return _nothing_to_compile(file, case.provider)


def _foreign(file: Model, provider: Provider) -> Failure | None:
    """Why a provider can't run a file that was compiled, ``None`` if it can."""
    if not file.compiled:
        return None
    named = {_bare_name(part.provider): part.provider for part in file.compiled if part.provider}
    for link in provider.links:
        named.pop(_bare_name(link.name), None)
    if not named and provider.is_execution_provider:
        return None
    others = sorted(named.values())
    known = [kind.alias for name, kind in BY_NAME.items() if _bare_name(name) in named]
    owner = known[0] if known else "".join(others[:1])
    return case_failure(
        f"the file is compiled for {', '.join(others) or 'a provider of ONNX Runtime'}, so "
        f"{provider.label} can't run it",
        (f"Use --ort-providers={owner}. To measure on {provider.label}, name" if owner else "Name")
        + " the .onnx file that this file was compiled from",
        phase="session",
    )


def _bare_name(name: str) -> str:
    """The name of a provider without what spellings of it in files differ by (``QNN``, ``Qnn``)."""
    return name.lower().removesuffix("executionprovider")


def _nothing_to_compile(file: Model, provider: Provider) -> Failure | None:
    """Why a provider compiles nothing of a file ahead, ``None`` if it may."""
    if not provider.is_execution_provider:
        return _refused(
            "--ort-compiled works only with execution providers of ONNX Runtime, and "
            f"{provider.label!r} is not one of them"
        )
    if provider.then:
        return _refused(
            f"--ort-compiled takes one provider, but {provider.label} names several",
            f"To compile, name one provider, e.g. --ort-providers={provider.alias}. To measure "
            f"{provider.label}, leave --ort-compiled out",
        )
    if provider.name in _BY_KERNELS:
        return _refused(
            f"--ort-compiled has no effect on {provider.label}, which compiles nothing",
            f"{_WITHOUT}. If another provider of this run compiles, write --ort-compiled=off,on: "
            f"{provider.label} is then measured without",
        )
    if file.compiled:
        return _refused("the file is already a compiled model")
    if is_ort_file(Path(file.path)):
        return _refused(
            "a file in ONNX Runtime's own format (.ort) can't be compiled",
            "To compile, name the .onnx file that this file was made from. To measure this file, "
            "leave --ort-compiled out",
        )
    return None


def _refused(message: str, hint: str = _WITHOUT) -> Failure:
    return case_failure(message, hint, phase="compile")


def why_unplanned(file: Model, provider: Provider, request: PlanRequest, *, compiled: bool) -> str:
    """Return why a combination is left out: it can't run, and nobody named it; empty if it stays.

    Args:
        file: The file that it runs, as it was read.
        provider: Where.
        request: What was asked for.
        compiled: Whether it is compiled ahead.
    """
    why = None
    if not provider.named:
        why = _foreign(file, provider)
    if why is None and compiled and "off" in request.compiled:
        # There is a row without.
        why = _nothing_to_compile(file, provider)
    return "" if why is None else why.message


def compiled_skips(
    models: Iterable[Model], providers: Iterable[Provider], request: PlanRequest, runtime: str
) -> Iterator[Skip]:
    """Yield what is left out of a plan, and why.

    Args:
        models: Those that could be read.
        providers: Those of one runtime.
        request: What was asked for.
        runtime: Label of the runtime.
    """
    providers = tuple(providers)
    for model in models:
        for provider in providers:
            plain = why_unplanned(model, provider, request, compiled=False)
            ahead = why_unplanned(model, provider, request, compiled="on" in request.compiled)
            if plain or ahead:
                what = f"{model.name} × {provider.label}{'' if plain else ' × compiled:on'}"
                yield Skip(what=what, reason=plain or ahead, runtime=runtime)
