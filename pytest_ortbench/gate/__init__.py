"""The gate: whether a change made a model slower, larger or less accurate.

``numbers`` decides, from what ``measuring`` measures; ``report`` says it.
"""
