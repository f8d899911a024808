"""What runs in the process of a yardstick: standard library at module level, numpy inside."""
