"""Memory over a long run: whether it grows for ever."""
