"""Several models together: the latency of each alone, and while the others run beside it."""
