"""A service under a steady load: what it loses, whether its memory grows, what faults do to it."""
