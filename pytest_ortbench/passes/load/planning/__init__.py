"""What options of loads say: reading them, files that they name, what does not go with others."""
