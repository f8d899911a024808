"""Pure data: what is measured, what came out, and the words for both. Standard library only.

This package and everything in it also runs inside the measured interpreter, which may be as
old as Python 3.10 and has nothing of ours installed; so it imports nothing but the standard
library and its own siblings.
"""
