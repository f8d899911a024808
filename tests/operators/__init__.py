"""ONNX's own operator tests, measured by the product: with their inputs, and with drawn ones."""
