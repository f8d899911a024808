"""What the files hold that a case reads besides models, noted while it is planned."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.file_digest import content_of


def with_contents(case: Case) -> Case:
    """Return the case with what its further files hold now."""
    contents = {path: content_of(path) for path in case.further_files()}
    return replace(case, file_contents={path: held for path, held in contents.items() if held})
