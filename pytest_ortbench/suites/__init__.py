"""The suites that ship: a few lines each, to run as they are and to copy.

``pytest --pyargs pytest_ortbench.suites`` runs them from wherever the package is installed. The
files of the same names in the folder ``suites`` of the source tree are the same to the byte (a
test holds that): there they are found, read and copied, here every kind of installation has them.
"""
