"""The shipped suite of this name, for ``pytest suites/test_latency.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_latency.py``.
"""

from pytest_ortbench.suites.test_latency import test_latency

__all__ = ["test_latency"]
