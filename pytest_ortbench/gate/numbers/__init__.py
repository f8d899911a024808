"""Statistics of the gate: two sides measured in one invocation, launch by launch."""
