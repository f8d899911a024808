"""What a language model writes, and whether it is right."""
