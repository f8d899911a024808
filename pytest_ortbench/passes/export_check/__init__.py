"""The export check: a pass that holds an exported file against the source that it was made from."""
