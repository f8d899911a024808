"""The checks, one module each; the registry lists them."""
