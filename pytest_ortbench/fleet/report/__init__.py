"""A comparison of runs as people and programs read it: terminal, Markdown, CSV, HTML."""
