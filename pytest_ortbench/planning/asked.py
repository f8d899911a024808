"""What a run was asked for: a case of a baseline that nobody asked for was not removed."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.model_spec import ONNX_FILES
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.providers import ALL, spec_words
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sides import Pairing

#: What the default set of models takes of the working tree.
DEFAULT_MODELS = (f"models/{ONNX_FILES}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The models, precisions and providers that a request names.

    Attributes:
        providers: Specifications of providers, ``all`` among them.
        precisions: Names of precisions. ``native`` brings the variants that a model has of its own
            along, and asks for none of them.
        models: Names of the models that the plan holds.
        patterns: Patterns that file names of further models would fit: ``*`` for a folder.
    """

    providers: tuple[str, ...]
    precisions: tuple[str, ...]
    models: frozenset[str]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, request: PlanRequest, plan: Plan, root: Path) -> Asked:
        """Return what a request asks for.

        Args:
            request: The axes.
            plan: What was made of them.
            root: Folder that paths of models start at.
        """
        return cls(
            providers=request.providers,
            precisions=request.precisions,
            models=frozenset(entry.case.model.name for entry in plan.entries),
            patterns=tuple(_patterns(request.models or DEFAULT_MODELS, root)),
        )

    def names(self, case: Case) -> bool:
        """Whether the run would have measured a case if its model had been there."""
        model = case.model
        return self._names_axes(case) and (
            model.name in self.models
            or any(fnmatch(Path(model.path).name, pattern) for pattern in self.patterns)
        )

    def misses(self, case: Case) -> bool:
        """Whether a stored case was lost: its model is measured without it, or is there no more.

        A file that is there and that the run does not name is one that nobody asked for.
        """
        model = case.model
        is_gone = model.source == "file" and not Path(model.path).exists()
        return self._names_axes(case) and (is_gone or model.name in self.models)

    def _names_axes(self, case: Case) -> bool:
        links = case.provider.links
        # A chain is asked for by its links in their order.
        named = any(
            len(words) == len(links)
            and all(
                word in (link.alias, link.name) for word, link in zip(words, links, strict=True)
            )
            for words in map(spec_words, self.providers)
        )
        is_in_all = ALL in self.providers and len(links) == 1
        return case.variant.precision in self.precisions and (named or is_in_all)


def without_unasked(
    pairing: Pairing, baselines: Sequence[Planned], asked: Callable[[Case], bool]
) -> Pairing:
    """Tell the cases that were removed from those that nobody asked for.

    Args:
        pairing: What became of the cases of both plans.
        baselines: Cases of the other side.
        asked: Whether this run would have measured a case if it had been there.
    """
    cases = {entry.case.key: entry.case for entry in baselines}
    return replace(
        pairing,
        vanished=tuple(key for key in pairing.vanished if asked(cases[key])),
        unasked=tuple(key for key in pairing.vanished if not asked(cases[key])),
    )


def _patterns(specs: Sequence[str], root: Path) -> list[str]:
    """Patterns of file names that folders and patterns of the request stand for."""
    found = []
    for spec in specs:
        path = root / spec
        if path.is_dir():
            found.append("*")
        elif glob.has_magic(spec) and not path.exists():
            found.append(path.name)
    return found
