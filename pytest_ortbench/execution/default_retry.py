"""A case that a graph refused at its default sizes: tried again at the next sensible ones.

That holds for what is measured, for what a variant is calibrated on, and for the two sides of a
gate: what one of them took is remembered for all cases of the model.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain

from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import Variant
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.core.recipe import Conversion
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.planning.compilations import COMPILED_FOLDER, Compilations
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.next_sizes import default_symbols, next_sizes, with_sizes
from pytest_ortbench.schema.case_questions import CheckOutputs

#: Failures that other sizes may mend, in the first inference.
_MENDED = ("error", "unsupported", "out_of_memory")


@dataclass(slots=True, kw_only=True)
class DefaultRetry:
    """Tries other default sizes, and remembers those that a model took.

    Attributes:
        launcher: Starts the workers.
    """

    launcher: Launcher
    _accepted: set[str] = field(default_factory=set)
    _taken: dict[str, dict[str, int]] = field(default_factory=dict)
    _compilations: Compilations | None = None

    def known(self, case: Case) -> Case:
        """Return the case at the sizes that its model took after it had refused the first ones."""
        sizes = self._taken.get(case.model.path)
        other = None
        if sizes and default_symbols(case).keys() >= sizes.keys():
            other = with_sizes(case, sizes)
        return other or case

    def other(self, result: CaseResult) -> Case | CaseResult:
        """Return the case at sizes that its graph takes, or its failure with what was tried.

        Args:
            result: What became of it.
        """
        case, failure = result.case, result.failure
        if failure is None or not _is_mended(failure):
            return result
        tried = {name: [size.size] for name, size in default_symbols(case).items()}
        for sizes in next_sizes(case, smaller=failure.kind == "out_of_memory"):
            other = with_sizes(case, sizes)
            if other is None:
                continue
            for name, size in sizes.items():
                tried[name].append(size)
            if self._failure(other) is None:
                self._taken[case.model.path] = sizes
                return other
        return replace(result, failure=_with_tries(failure, tried)) if tried else result

    def prepare(self, planned: Planned, variants: Variants) -> Case:
        """Return a case with the file that it runs, made if it is not there yet.

        Args:
            planned: The case.
            variants: Makes the file of its variant.

        Raises:
            WorkerError: if it can't be made.
        """
        case = self._with_variant(planned, variants)
        if not case.compiled:
            return case
        if self._compilations is None:
            folder = variants.folder.with_name(COMPILED_FOLDER)
            self._compilations = Compilations(launcher=self.launcher, folder=folder)
        return self._compilations.prepare(case)

    def _with_variant(self, planned: Planned, variants: Variants) -> Case:
        """The case with its variant, calibrated at sizes that its model takes."""
        case, conversion = self.known(planned.case), planned.conversion
        if conversion is None:
            return case
        conversion = self._calibrated(case, conversion)
        try:
            return variants.prepare(case, conversion)
        except WorkerError:
            if not _draws(conversion):
                raise
            asked = _as_it_is(case, conversion)
            if self._mended_sizes(asked, first=_sizes_beside(case, asked)) is None:
                raise
        case = self.known(planned.case)
        return variants.prepare(case, self._calibrated(case, conversion))

    def fitting(self, case: Case) -> Case:
        """Return a case at sizes that its graph takes, or as it is if none of the tried ones does.

        Args:
            case: The case, with its file.
        """
        case = self.known(case)
        if case.model.path in self._accepted or not default_symbols(case):
            return case
        self._mended_sizes(case)
        return self.known(case)

    def follow(self, model: str, other: str) -> bool:
        """Remember for one model the sizes that another one took, unless it took some itself.

        Args:
            model: Path of the model.
            other: Path of the other one.

        Returns:
            Whether that is new.
        """
        if model in self._taken or other not in self._taken:
            return False
        self._taken[model] = self._taken[other]
        return True

    def together(self, first: Case, second: Case, failure: Failure) -> tuple[Case, Case] | None:
        """Return two cases at sizes that both of their graphs take, ``None`` if there are none.

        Args:
            first: A case.
            second: The one that it is compared with.
            failure: What became of one of them.
        """
        if not _is_mended(failure):
            return None
        for sizes in next_sizes(second, smaller=failure.kind == "out_of_memory"):
            before, after = with_sizes(first, sizes), with_sizes(second, sizes)
            if before is None or after is None:
                continue
            if self._failure(after) is None and self._failure(before) is None:
                self._taken.update(dict.fromkeys((first.model.path, second.model.path), sizes))
                return before, after
        return None

    def _calibrated(self, case: Case, conversion: Conversion) -> Conversion:
        """The conversion with calibration inputs of the sizes that the model took."""
        if not _draws(conversion):
            return conversion
        inputs = self.known(replace(case, inputs=conversion.inputs, dims={})).inputs
        return replace(conversion, inputs=inputs)

    def _mended_sizes(
        self, case: Case, first: Mapping[str, int] | None = None
    ) -> Mapping[str, int] | None:
        """Sizes that a graph takes after it refused those of a case; ``None`` if none mends it."""
        failure = self._failure(case)
        if failure is None:
            self._accepted.add(case.model.path)
            return None
        if not _is_mended(failure):
            return None
        small = failure.kind == "out_of_memory"
        for sizes in chain([first] if first else [], next_sizes(case, smaller=small)):
            other = with_sizes(case, sizes)
            if other is not None and self._failure(other) is None:
                self._taken[case.model.path] = dict(sizes)
                return sizes
        return None

    def _failure(self, case: Case) -> Failure | None:
        """What one inference of a case fails with, ``None`` if it runs."""
        deadline = time.monotonic() + case.sampling.timeout_s
        try:
            with closing(self.launcher.open(case, worker=0, deadline=deadline)) as worker:
                worker.ask(CheckOutputs(run="first"))
        except WorkerError as error:
            return error.failure
        return None


def _is_mended(failure: Failure) -> bool:
    """Whether other sizes may mend a failure."""
    return failure.phase == "first" and failure.kind in _MENDED


def _draws(conversion: Conversion) -> bool:
    """Whether a conversion is calibrated on random inputs."""
    recipe = conversion.recipe
    stored = recipe.calibration_data or conversion.calibration
    return recipe.base == "int8-static" and not stored


def _as_it_is(case: Case, conversion: Conversion) -> Case:
    """The case of the source of a conversion, fed what it is calibrated on."""
    model = case.model
    file = Variant(
        precision="native", path=model.path, digest=model.digest, size_bytes=model.size_bytes
    )
    return replace(case, variant=file, inputs=conversion.inputs, dims={}, dataset=None)


def _sizes_beside(case: Case, asked: Case) -> dict[str, int]:
    """Sizes that the user set for a case, where other ones are calibrated on."""
    defaults = default_symbols(asked)
    return {
        size.symbol: size.size
        for spec in case.inputs
        for size in spec.resolved
        if size.symbol in defaults and defaults[size.symbol].size != size.size
    }


def _with_tries(failure: Failure, tried: dict[str, list[int]]) -> Failure:
    told = "; ".join(f"{name} {', '.join(map(str, sizes))}" for name, sizes in tried.items())
    name = next(iter(tried))
    hint = f"These sizes were not set, so defaults were tried: {told}. Set them with "
    hint += f"--ort-dims={name}:SIZE"
    return replace(failure, hint=f"{failure.hint.rstrip('. ')}. {hint}" if failure.hint else hint)
