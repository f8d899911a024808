"""Figures of profiles: shares of operators, and rates under the roof of the machine."""
