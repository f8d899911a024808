"""Yardsticks: their work, which one a case takes, and the turns of a model with one."""
