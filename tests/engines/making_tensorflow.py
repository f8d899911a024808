"""Make sources of TensorFlow in the current folder: run where TensorFlow is, by its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

#: A module, whose function is an entry.
NET = """
import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        random = tf.random.Generator.from_seed(3)
        self.weights = tf.Variable(random.normal((16, 5)))

    def __call__(self, left, right):
        return {"scores": tf.nn.softmax((left + right) @ self.weights), "sum": left + right}


def build():
    example = tuple(tf.random.Generator.from_seed(seed).normal((64, 16)) for seed in (1, 2))
    return Net(), example, {"names": ["left", "right"], "dynamic": {"left": {0: "rows"},
                                                                    "right": {0: "rows"}}}


def without_onnx():
    @tf.function(input_signature=[tf.TensorSpec((3, 3), name="x")])
    def values(x):
        return tf.linalg.svd(x)[0]

    return values
"""


def network() -> Any:
    """A small network of images with ten classes."""
    layers = keras.layers
    image = keras.Input((32, 32, 3), name="image")
    values = layers.Conv2D(16, 3, padding="same", activation="relu")(image)
    values = layers.BatchNormalization()(values)
    values = layers.MaxPooling2D()(values)
    values = layers.GlobalAveragePooling2D()(layers.Conv2D(32, 3, activation="relu")(values))
    return keras.Model(image, layers.Dense(10, activation="softmax", name="scores")(values))


def converted(model: Any, *, is_integer: bool) -> bytes:
    """The network as a file of TensorFlow Lite."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if is_integer:
        random = np.random.default_rng(0)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [random.random((1, 32, 32, 3), dtype=np.float32)] for _ in range(20)
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    made: bytes = converter.convert()
    return made


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    made = network()
    made.save("net.keras")
    made.export("saved", verbose=False)
    Path("net.tflite").write_bytes(converted(made, is_integer=False))
    Path("int8.tflite").write_bytes(converted(made, is_integer=True))
    Path("net.py").write_text(NET, encoding="utf-8")
    code = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda value: value * 2)])
    code.save("code.keras")
