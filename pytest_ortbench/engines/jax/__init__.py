"""JAX, through jaxonnxruntime."""
