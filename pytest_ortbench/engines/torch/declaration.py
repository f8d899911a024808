"""PyTorch, running a model eagerly: operator by operator, as written."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

#: What every row of PyTorch takes.
OPTIONS = {
    "memory_format": "channels_last lays images out with their channels last",
    "autocast": "the type that torch.autocast computes in: bfloat16 or float16",
    "num_interop_threads": "threads that run operators in parallel; by default as many as "
    "--ort-threads",
}

ENGINE = EngineKind(
    alias="torch",
    title="PyTorch",
    target="pytest_ortbench.engines.torch.worker.eager:Eager",
    is_framework=True,
    models=("torch",),
    exporter="pytest_ortbench.engines.torch.export:export_module",
    exporter_options={
        "exporter": "dynamo, the current one (by default), or torchscript, the older one",
        "inputs": "sizes and types of the inputs of a program that has no examples, in order: "
        "1x3x224x224;1x16:int64",
        "opset": "the opset that it writes; by default its own",
    },
    exporter_distributions=("onnx", "onnxscript"),
    loader="pytest_ortbench.engines.torch.worker.program:load_program_file",
    source_suffixes=(".pt2", ".pt"),
    distributions=("torch",),
    takes_device=True,
    writer="pytest_ortbench.engines.torch.worker.causal:CausalModel",
    libraries=("transformers",),
    options={
        **OPTIONS,
        "dtype": "of a language model, the type of its weights: float32, bfloat16, float16, or "
        "auto for that of its folder; by default that of the ONNX file's cache",
    },
)
