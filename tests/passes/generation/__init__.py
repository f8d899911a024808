"""Tests of :mod:`pytest_ortbench.passes.generation`."""
