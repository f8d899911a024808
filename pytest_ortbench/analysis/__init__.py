"""Statistics, summaries, validity, comparison and the gate: pure functions over core types."""
