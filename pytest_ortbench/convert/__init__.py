"""Making a model's variants with ONNX Runtime's own tools, in a process that measures nothing."""
