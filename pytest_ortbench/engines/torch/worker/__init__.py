"""PyTorch in the process that measures: programs, what passes in and out of them, eager runs."""
