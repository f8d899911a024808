"""What is wrong with a run, noted where it is found, for what CI services show."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.complaint import RUN, TEST, Complaint

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Key
    from pytest_ortbench.planning.matrix import Planned

#: Where CI services say that the repository lies.
_CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
#: Lines of a failure that are kept: message and next step, and no log.
_LINES = 3


class Complaints:
    """Knows what tests of ours failed for, and what fails the run without a test.

    Args:
        root: Pytest's root directory.
        name_of: Names a case in messages.
    """

    def __init__(self, root: Path, name_of: Callable[[Planned], str]) -> None:
        self._root = root
        self._name_of = name_of
        self._of_tests: dict[str, list[Complaint]] = {}
        self._carriers: dict[str, tuple[Key, ...]] = {}
        self._of_run: list[Complaint] = []

    def begin(self, item: pytest.Item) -> None:
        """Forget what a test failed for in an earlier call of it."""
        self._of_tests.pop(item.nodeid, None)
        self._carriers.pop(item.nodeid, None)

    def carries_gate(self, item: pytest.Item, keys: Iterable[Key]) -> None:
        """Note a test that fails for verdicts of the gate, which the run itself tells.

        Args:
            item: The test.
            keys: The cases that they are about.
        """
        self._carriers[item.nodeid] = tuple(keys)

    def gates_told(self, failed: Collection[str]) -> set[Key]:
        """Return the cases whose verdict of the gate stands in the failure of a test.

        Args:
            failed: Ids of the tests that were reported as failed.
        """
        return {key for nodeid, keys in self._carriers.items() if nodeid in failed for key in keys}

    def note(
        self, item: pytest.Item, planned: Planned, kind: str, problems: Iterable[tuple[str, str]]
    ) -> None:
        """Note what a test fails for.

        Args:
            item: The test.
            planned: The case that it is about.
            kind: As of a complaint.
            problems: What of the case each is about, and its text.
        """
        path, line = self._place(item, planned)
        known = self._of_tests.setdefault(item.nodeid, [])
        for about, text in problems:
            complaint = Complaint(
                kind=kind,
                text=text,
                about=about,
                case=self._name_of(planned),
                test=item.nodeid,
                path=path,
                line=line,
            )
            if complaint not in known:
                known.append(complaint)

    def failed(
        self,
        item: pytest.Item,
        excinfo: pytest.ExceptionInfo[BaseException],
        cases: Sequence[Planned],
    ) -> None:
        """Note a test that failed, unless it is known what for."""
        if self._of_tests.get(item.nodeid) or item.nodeid in self._carriers:
            return
        if isinstance(excinfo.value, pytest.fail.Exception):
            lines = str(excinfo.value).splitlines()[:_LINES]
        else:
            lines = excinfo.exconly(tryshort=True).splitlines()[:1]
        planned = cases[0] if len(cases) == 1 else None
        path, line = self._place(item, planned)
        self._of_tests[item.nodeid] = [
            Complaint(
                kind=TEST,
                text=" ".join(filter(None, map(str.strip, lines))),
                about=str(getattr(item, "originalname", item.name)),
                case="" if planned is None else self._name_of(planned),
                test=item.nodeid,
                path=path,
                line=line,
            )
        ]

    def of_run(self, problems: Iterable[str], *, are_unreached: bool = False) -> None:
        """Note what fails the run though no test does.

        Args:
            problems: A text each.
            are_unreached: Whether they say only that no test of a case reached its end.
        """
        self._of_run += [
            Complaint(kind=RUN, text=text, is_unreached=are_unreached) for text in problems
        ]

    def told(self, failed: Collection[str]) -> list[Complaint]:
        """Return everything that is wrong beside the verdicts of a gate.

        Args:
            failed: Ids of the tests that were reported as failed.
        """
        of_tests = [
            complaint
            for nodeid, complaints in self._of_tests.items()
            if nodeid in failed
            for complaint in complaints
        ]
        return [*of_tests, *self._of_run]

    def file_of(self, planned: Planned | None) -> str:
        """Return the model file of a case by its path in the repository; empty for none of it."""
        return "" if planned is None else self._relative(Path(planned.case.model.path))

    # -- where it is shown --------------------------------------------------------------------

    def _place(self, item: pytest.Item, planned: Planned | None) -> tuple[str, int]:
        """The file and line of a user's own test; of a shipped one the model file."""
        path, line, _ = item.location
        test = self._relative(self._root / path)
        model = self.file_of(planned)
        if test in ("", model) or _is_shipped(item):
            return model, 0
        return test, (line or 0) + 1

    def _relative(self, path: Path) -> str:
        """A file of the repository by its path in it; empty for any other."""
        try:
            return path.resolve().relative_to(self._repository).as_posix()
        except (ValueError, OSError, RuntimeError):
            return ""

    @property
    def _repository(self) -> Path:
        """The repository: as the CI service says, else what holds git's folder, else the root."""
        root = self._root.resolve()
        for name in _CHECKOUTS:
            folder = os.environ.get(name)
            if folder and root.is_relative_to(Path(folder).resolve()):
                return Path(folder).resolve()
        return next((each for each in (root, *root.parents) if (each / ".git").exists()), root)


def _is_shipped(item: pytest.Item) -> bool:
    """Whether a test is one of ours, which no change of the user can be about."""
    module = getattr(getattr(item, "function", None), "__module__", "") or ""
    return module.partition(".")[0] == "pytest_ortbench"
