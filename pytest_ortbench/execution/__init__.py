"""Runs a plan: cases go to workers, results to disk. Plugin and console tool both stand on it."""
