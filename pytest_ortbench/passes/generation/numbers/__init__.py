"""What requests took, and whether what is written is right, in numbers."""
