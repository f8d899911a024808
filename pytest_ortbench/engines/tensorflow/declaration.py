"""TensorFlow: a Keras file, a folder of a SavedModel, or what a function returns."""

from __future__ import annotations

from pytest_ortbench.core.model_spec import SAVED_MODEL
from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="tensorflow",
    title="TensorFlow",
    target="pytest_ortbench.engines.tensorflow.worker.engine:TensorFlow",
    is_framework=True,
    distributions=("tensorflow",),
    takes_device=True,
    options={
        "inter_op_parallelism_threads": "threads across operators; 1 by default, as in a "
        "session of ONNX Runtime that runs operators one after the other",
        "jit_compile": "1 compiles the function with XLA",
    },
    models=("keras", "tensorflow"),
    exporter="pytest_ortbench.engines.tensorflow.export:export_tensorflow",
    exporter_distributions=("tf2onnx",),
    loader="pytest_ortbench.engines.tensorflow.worker.files:load_saved",
    source_suffixes=(".keras",),
    source_marks=(SAVED_MODEL,),
    entry_keys={
        "signature": "the signature of a SavedModel that is called, serving_default if not"
    },
)
