"""What workers do for the check of an export: one has ONNX Runtime, the other the framework."""
