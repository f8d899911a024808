"""What runs models in place of a session of ONNX Runtime: a folder for each engine."""
