"""The shipped suite of this name, for ``pytest suites/test_load.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_load.py``.
"""

from pytest_ortbench.suites.test_load import test_load

__all__ = ["test_load"]
