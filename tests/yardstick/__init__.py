"""Yardsticks."""
