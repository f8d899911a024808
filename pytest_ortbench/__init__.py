"""Benchmark ONNX models over execution providers, precisions and shapes, as pytest items."""

__version__ = "0.1.0"
