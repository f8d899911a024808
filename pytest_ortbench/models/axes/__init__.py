"""Where each axis of an input goes in the graph, and what operators do along it."""
