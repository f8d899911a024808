"""The suites that ship, one short test each, to run as they are and to copy.

``pytest --pyargs pytest_ortbench.suites`` runs them from wherever the package is installed. In this
repository ``pytest suites`` does: the files there import these.
"""
