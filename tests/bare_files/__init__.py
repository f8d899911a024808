"""Real model files out of packages, measured as a user would who names a file and nothing else."""
