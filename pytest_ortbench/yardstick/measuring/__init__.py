"""The host's side of a yardstick while a case is measured."""
