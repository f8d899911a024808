"""Measuring for the gate: two sides in turns, their answers, and the gate's own error rates."""
