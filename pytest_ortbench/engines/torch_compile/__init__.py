"""PyTorch with torch.compile."""
