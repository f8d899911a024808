"""What runs in the process that measures TensorFlow, or exports from it."""
