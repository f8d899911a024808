"""The shipped suite of this name, for ``pytest suites/test_accuracy.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_accuracy.py``.
"""

from pytest_ortbench.suites.test_accuracy import test_accuracy

__all__ = ["test_accuracy"]
