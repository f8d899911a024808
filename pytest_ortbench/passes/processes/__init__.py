"""A case in several processes at a time."""
