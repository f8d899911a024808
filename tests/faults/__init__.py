"""Faults on real processes; a signal goes only to what the test itself started."""
