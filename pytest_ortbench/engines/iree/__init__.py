"""IREE, a compiler on MLIR, and its runtime."""
