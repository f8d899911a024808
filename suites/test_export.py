"""The shipped suite of this name, for ``pytest suites/test_export.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_export.py``.
"""

from pytest_ortbench.suites.test_export import test_export

__all__ = ["test_export"]
