"""From what was asked to the cases that run, and a reason for each one left out."""
