"""TensorFlow, and Keras on it."""
