"""Runtimes: interpreters with ONNX Runtime, found, configured, or made in environments."""
