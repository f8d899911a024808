"""Tests of the self-check."""
