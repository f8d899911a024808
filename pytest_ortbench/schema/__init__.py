"""Core data types as JSON: the run document, its older versions, its schema, the wire format."""
