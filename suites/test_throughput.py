"""The shipped suite of this name, for ``pytest suites/test_throughput.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_throughput.py``.
"""

from pytest_ortbench.suites.test_throughput import test_throughput

__all__ = ["test_throughput"]
