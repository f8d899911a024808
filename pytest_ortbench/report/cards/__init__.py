"""Cards that answer for one model or one comparison: a sentence, bars, and what unfolds."""
