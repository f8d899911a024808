"""Scores on labelled data."""
