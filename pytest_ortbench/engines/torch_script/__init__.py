"""PyTorch with TorchScript."""
