"""PyTorch, running a model eagerly."""
