"""The shipped suite of this name, for ``pytest suites/test_generation.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_generation.py``.
"""

from pytest_ortbench.suites.test_generation import test_generation

__all__ = ["test_generation"]
