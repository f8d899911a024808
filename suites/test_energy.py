"""The shipped suite of this name, for ``pytest suites/test_energy.py`` in this repository.

To set limits of your own, copy ``pytest_ortbench/suites/test_energy.py``.
"""

from pytest_ortbench.suites.test_energy import test_energy

__all__ = ["test_energy"]
