"""Measuring on many machines: an inventory, what is sent to each, its run, and what comes back."""
