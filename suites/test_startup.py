"""The shipped suite of this name, for ``pytest suites/test_startup.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_startup.py``.
"""

from pytest_ortbench.suites.test_startup import test_startup

__all__ = ["test_startup"]
