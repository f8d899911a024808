"""The service: a model behind HTTP, and the protocol that it speaks."""
