"""Whether an exported model answers what its source does."""
