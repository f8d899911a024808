"""The shipped suite of this name, for ``pytest suites/test_placement.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_placement.py``.
"""

from pytest_ortbench.suites.test_placement import test_placement

__all__ = ["test_placement"]
