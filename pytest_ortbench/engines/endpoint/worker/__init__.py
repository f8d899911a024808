"""The client of an endpoint: one request at a time, or as they arrive under load."""
