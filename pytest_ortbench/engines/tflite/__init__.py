"""TensorFlow Lite, by the package ai-edge-litert."""
