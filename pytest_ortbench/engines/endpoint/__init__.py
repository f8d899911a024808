"""A service that runs the model somewhere, asked over HTTP."""
