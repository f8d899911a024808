"""A run as people and other programs read it: terminal, Markdown, CSV, HTML, figures, JUnit.

Every rendering is a function from a run to text or files; none prints.
"""
