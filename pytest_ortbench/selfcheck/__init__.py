"""The self-check: whether what this package measures holds on the machine that it runs on."""
