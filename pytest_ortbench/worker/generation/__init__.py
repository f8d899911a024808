"""Requests of language models, inside the measured interpreter."""
