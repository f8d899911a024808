"""The host's side of the endurance of a service: its load, its memory, what is done to it."""
