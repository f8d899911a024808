"""The service and its protocol."""
