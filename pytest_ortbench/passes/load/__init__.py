"""A case under MLPerf's load generator."""
