"""Model files inside Python packages, which are measured without importing the package.

pytest imports the ``__init__.py`` of a package before the first item below it runs. For a model
that is wrong: the module may be missing something, load a framework into the process, or take
seconds, and nothing of it is needed. Tests of Python below the same package have it as ever.
"""

from __future__ import annotations

import pytest

from pytest_ortbench.plugin.model_files import OnnxFile


class ModelPackage(pytest.Package):
    """A package that holds a model file: set up before its first test of Python, no earlier."""

    _for_model = False
    _waiting = False
    _error: BaseException | None = None

    def setup(self) -> None:
        """Set the package up, unless it is a model that is about to be measured."""
        self._waiting = self._for_model
        if not self._for_model:
            self._import()

    def _import(self) -> None:
        try:
            super().setup()
        except BaseException as error:
            self._error = error
            raise

    def teardown(self) -> None:
        """Forget what became of it."""
        self._waiting = False
        self._error = None
        super().teardown()

    def expect(self, *, model: bool) -> None:
        """Be ready for the next item: a test of a model, or one of Python.

        Raises:
            BaseException: what the package raised, for a test of Python.
        """
        self._for_model = model
        stack = self.session._setupstate.stack
        if self not in stack:
            return
        if model:
            # What a package raises is the affair of its own tests. pytest keeps it for every item
            # below, so it is taken out here and raised below for those that it concerns.
            stack[self] = (stack[self][0], None)
        elif self._error is not None:
            raise self._error
        elif self._waiting:
            self._waiting = False
            self._import()


def expect(item: pytest.Item) -> None:
    """Have the packages above an item imported if it is a test of Python, and else not."""
    model = item.getparent(OnnxFile) is not None
    for node in item.listchain():
        if isinstance(node, ModelPackage):
            node.expect(model=model)
