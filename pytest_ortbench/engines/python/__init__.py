"""Any callable of the user's, beside a named ONNX file."""
