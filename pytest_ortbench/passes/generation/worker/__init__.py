"""What a decoder writes, looked at inside a worker."""
