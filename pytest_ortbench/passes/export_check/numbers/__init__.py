"""How near an export is to its source, and whether it answers what that does."""
