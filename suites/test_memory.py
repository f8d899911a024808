"""The shipped suite of this name, for ``pytest suites/test_memory.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_memory.py``.
"""

from pytest_ortbench.suites.test_memory import test_memory

__all__ = ["test_memory"]
