"""Models: reading a file without its weights, the catalogue, fetching, and the builders.

``graph.read_model`` turns a file into a ``core.model.Model``; ``resolve.resolve_models`` turns what
a user typed into models. Nothing here runs a model.
"""
