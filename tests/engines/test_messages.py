"""What engines are told of inputs, and what is read out of their messages."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pytest_ortbench.engines.iree import worker as iree
from pytest_ortbench.engines.jax import worker as jax
from pytest_ortbench.engines.mnn import worker as mnn
from pytest_ortbench.engines.ncnn import worker as ncnn
from pytest_ortbench.engines.openvino_native import worker as openvino_native
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask, EngineTensor, require_types
from pytest_ortbench.engines.torch.worker.eager import Eager
from pytest_ortbench.engines.tract.worker import fact_of, refusal_of

_UNKNOWN = """Translating node #1 "y" Unimplemented(Det) ToTypedTranslator

Caused by:
    Operator can not be made a TypedOp.

Stack backtrace:
   0: <anyhow::Error>::msg::<&str>
"""
_NUMBERED = """Evaluating node 3

Caused by:
    0: in the kernel
    1: sizes differ: 1 and 2
"""


@pytest.mark.parametrize(
    ("shape", "fact"), [((), "f32"), ((1,), "1,f32"), ((1, 3, 8, 8), "1,3,8,8,f32")]
)
def test_an_input_is_told_by_its_sizes_and_type(shape: tuple[int, ...], fact: str) -> None:
    assert fact_of(EngineTensor(name="x", type="tensor(float)", shape=shape)) == fact


def test_a_type_that_an_engine_has_not_is_refused_with_its_tensor() -> None:
    task = EngineTask(
        path=Path("net.onnx"),
        inputs=(EngineTensor(name="x", type="tensor(float)", shape=(1,)),),
        outputs=(EngineTensor(name="words", type="seq(tensor(string))"),),
        threads=1,
    )
    require_types(task, "MNN", {"tensor(float)", "seq(tensor(string))"})
    with pytest.raises(EngineRefusal) as caught:
        require_types(task, "MNN", {"tensor(float)"})
    assert caught.value.kind == "unsupported"
    assert str(caught.value) == "MNN does not support seq(tensor(string)), the type of 'words'"


def test_a_lacking_operator_is_named_and_the_stack_is_not_quoted() -> None:
    line = refusal_of(_UNKNOWN)
    assert "operator Det" in line
    assert "Operator can not be made a TypedOp" in line
    assert "anyhow" not in line
    assert "\n" not in line


def test_causes_are_joined_without_their_numbers() -> None:
    assert refusal_of(_NUMBERED) == (
        "tract can't run the model. "
        "It says: 'Evaluating node 3: in the kernel: sizes differ: 1 and 2'"
    )


_UNCONVERTED = """The device supports: i8sdot:0, fp16:0
[13:31:16] :46: ONNX Model ir version: 8
Start to Optimize the MNN Net...
[13:31:16] :220: These Op Not Support: ONNX::FusedMatMul ONNX::Foo
Converted Failed!
"""


@pytest.mark.parametrize(
    ("log", "status", "line"),
    [
        (
            _UNCONVERTED,
            0,
            "MNN lacks the operators FusedMatMul, Foo. It says: 'These Op Not Support: "
            "ONNX::FusedMatMul ONNX::Foo'",
        ),
        ("Start to Optimize\n", -11, "MNN's converter ended by signal 11"),
        (
            "[13:31:16] :9: no such file\n",
            1,
            "MNN can't convert the model. It says: 'no such file'",
        ),
        ("", 1, "MNN can't convert the model. It gives no reason"),
    ],
)
def test_mnn_says_why_it_converted_nothing(log: str, status: int, line: str) -> None:
    assert mnn.conversion_refusal(log, status) == line


_NO_FOO = """CompilerToolError: Error invoking IREE compiler tool iree-compile
Error code: 1
Diagnostics:
<unknown>:0: error: loc(""): failed to legalize operation 'torch.operator': <{name = "onnx.Foo"}>

Invoked with:
 iree-compile model.mlirbc --iree-input-type=onnx
"""


@pytest.mark.parametrize(
    ("log", "status", "line"),
    [
        (
            _NO_FOO,
            1,
            "IREE can't compile the operator Foo. It says: \"failed to legalize operation "
            '\'torch.operator\': <{name = "onnx.Foo"}>"',
        ),
        (
            'a.mlir:3: error: loc(fused["a", "b"]): failed to legalize \'torch.aten.fft_rfft\'\n',
            1,
            "IREE can't compile the operator torch.aten.fft_rfft. It says: \"failed to legalize "
            "'torch.aten.fft_rfft'\"",
        ),
        (
            "OnnxImportError: Unhandled type in Sequence TypeProto\n",
            1,
            "IREE can't compile the model. It says: 'OnnxImportError: Unhandled type in Sequence "
            "TypeProto'",
        ),
        ("PLEASE submit a bug report\n", -6, "IREE's compiler ended by signal 6"),
        (
            "CompilerToolError: iree-compile\nError code: -11\nDiagnostics:\nStack dump:\n",
            1,
            "IREE's compiler ended by signal 11",
        ),
        ("", 1, "IREE can't compile the model. It gives no reason"),
    ],
)
def test_iree_says_why_it_compiled_nothing(log: str, status: int, line: str) -> None:
    assert iree.compile_refusal(log, status) == line


def test_files_of_iree_are_left_out_of_its_messages() -> None:
    text = (
        "no allocation: c/runtime/src/iree/hal/allocator.c:19: INVALID_ARGUMENT;\n alignment 4096"
    )
    assert iree.runtime_said(text) == "It says: 'no allocation: INVALID_ARGUMENT; alignment 4096'"


def test_iree_is_told_the_sizes_and_the_cpu_that_it_compiles_for() -> None:
    inputs = [EngineTensor(name="x", type="tensor(float)", shape=(1, 3))]
    assert iree.sizes_of(inputs) == {"x": [1, 3]}
    assert "--iree-llvmcpu-target-cpu=host" in iree.compiler_flags("llvm-cpu", {})
    assert "--iree-llvmcpu-target-cpu=znver4" in iree.compiler_flags(
        "llvm-cpu", {"iree-llvmcpu-target-cpu": "znver4"}
    )
    flags = iree.compiler_flags("vulkan-spirv", {"iree-opt-level": "O3"})
    assert "--iree-opt-level=O3" in flags
    assert not any("cpu" in flag for flag in flags)


@pytest.mark.parametrize(
    ("device", "threads", "driver"),
    [("", 1, "local-sync"), ("", 4, "local-task"), ("vulkan", 1, "vulkan")],
)
def test_iree_computes_on_the_calling_thread_where_it_has_one(
    device: str, threads: int, driver: str
) -> None:
    task = EngineTask(path=Path("net.onnx"), inputs=(), outputs=(), threads=threads, device=device)
    assert iree.Iree(task).driver == driver


class _Node:
    op_type = "Clip"


@pytest.mark.parametrize(
    ("platforms", "device", "named"),
    [
        ("", "", "=jax:cpu"),
        ("", "gpu", "=jax:cpu"),
        ("", "gpu", "on gpu"),
        ("cuda", "cpu", "JAX_PLATFORMS"),
    ],
)
def test_a_device_that_jax_lacks_is_not_named_again(
    monkeypatch: pytest.MonkeyPatch, platforms: str, device: str, named: str
) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    step = jax.next_step(device)
    assert named in step
    assert not device or f"=jax:{device}" not in step


def test_jax_names_the_operator_at_which_its_translation_stopped() -> None:
    def translate(node: object) -> None:
        del node
        raise TypeError("unexpected keyword argument 'a_max'\nand a second line")

    with pytest.raises(TypeError) as caught:
        translate(_Node())
    assert jax.translation_refusal(caught.value) == (
        "jaxonnxruntime can't translate the model. It says: \"TypeError: unexpected keyword "
        "argument 'a_max'\""
    )

    def translate_graph() -> None:
        node = _Node()
        translate(node)

    with pytest.raises(TypeError) as caught:
        translate_graph()
    assert jax.translation_refusal(caught.value) == (
        "jaxonnxruntime can't translate the operator Clip. It says: \"TypeError: unexpected "
        "keyword argument 'a_max'\""
    )


_NO_DET = """Exception from src/inference/src/cpp/core.cpp:84:
Check 'false' failed at src/frontends/common_translators/src/report.cpp:151:
FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted.
Summary:
-- No conversion rule found for operations: Det-17


"""
_NO_GPU = """Exception from src/inference/src/cpp/core.cpp:268:
Cannot load library "/lib/libopenvino_intel_gpu_plugin.so": libOpenCL.so.1: cannot open
"""
_NO_HINT = """Exception from src/inference/src/cpp/core.cpp:117:
Exception from src/plugins/intel_cpu/src/config.cpp:266:
Wrong value f8 for property key INFERENCE_PRECISION_HINT. Supported values: bf16, f16, f32
"""


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        (
            _NO_DET,
            "unsupported",
            "OpenVINO lacks the operator Det-17. It says: 'No conversion rule found for "
            "operations: Det-17'",
        ),
        (
            _NO_GPU,
            "unavailable",
            "OpenVINO can't use the device GPU. It says: 'Cannot load library "
            '"/lib/libopenvino_intel_gpu_plugin.so": libOpenCL.so.1: cannot open\'',
        ),
        (
            _NO_HINT,
            "unsupported",
            "OpenVINO can't run the model. It says: 'Wrong value f8 for property key "
            "INFERENCE_PRECISION_HINT. Supported values: bf16, f16, f32'",
        ),
        (
            "Exception from a.cpp:1:\n",
            "unsupported",
            "OpenVINO can't run the model. It says: 'Exception from a.cpp:1:'",
        ),
        ("", "unsupported", "OpenVINO can't run the model. It gives no reason"),
    ],
)
def test_openvino_tells_the_cause_and_not_where(text: str, kind: str, line: str) -> None:
    refusal = openvino_native.refusal_from(
        text,
        EngineTask(
            path=Path("net.onnx"),
            inputs=(),
            outputs=(),
            threads=1,
            device="GPU",
            options={"INFERENCE_PRECISION_HINT": "f8"},
        ),
    )
    assert (refusal.kind, str(refusal)) == (kind, line)
    # Only what it can't run may be the fault of an option.
    assert ("INFERENCE_PRECISION_HINT=f8" in refusal.hint) is ("can't run" in line)


@pytest.mark.parametrize(
    ("value", "given", "option"),
    [
        (2, "", "2"),
        ("LATENCY", "latency", "latency"),
        (True, "", "YES"),
        (True, "true", "true"),
        (False, "YES", "NO"),
        (["CPU"], "", "CPU"),
        ("<Type: 'bfloat16'>", "f32", "bf16"),
        ("<Type: 'float32'>", "F32", "F32"),
        ("ExecutionMode.ACCURACY", "ACCURACY", "ACCURACY"),
    ],
)
def test_openvino_reads_options_back_as_they_are_written(
    value: object, given: str, option: str
) -> None:
    assert openvino_native.as_option(value, given) == option


_CRASHED = """\x1b[0;93m2026-11-29 [W:onnxruntime:pnnx, cpuid_info.cc:105] Unknown CPU vendor\x1b[m
ort Run failed Non-zero status code returned while running Gather node. Name:'embeddings/Gather.6'
fold_constants ...
"""


@pytest.mark.parametrize(
    ("log", "status", "line"),
    [
        (
            _CRASHED,
            -11,
            "ncnn's converter pnnx ended by signal 11. It says: \"ort Run failed Non-zero "
            "status code returned while running Gather node. Name:'embeddings/Gather.6'\"",
        ),
        ("fold_constants ...\n", -11, "ncnn's converter pnnx ended by signal 11"),
        (
            "parameter conflict\n",
            255,
            "ncnn's converter pnnx failed. It says: 'parameter conflict'",
        ),
        ("", 1, "ncnn's converter pnnx failed. It gives no reason"),
    ],
)
def test_ncnn_says_why_its_converter_wrote_nothing(log: str, status: int, line: str) -> None:
    assert ncnn.pnnx_refusal(log, status) == line


_NETWORK = """7767517
5 5
Input                    in0                      0 1 in0
Convolution              convrelu_0               1 1 in0 1 0=16 1=3
Tensor.to                Tensor.to_3              1 1 1 2
Convolution              conv_4                   1 1 2 3 0=16
Softmax                  softmax_2                1 1 3 out0 0=0 1=1
"""
_SIZES = """7767517
3 2
pnnx.Input               in0                      0 1 0 #0=(1,3,32,32)f32
pnnx.Output              out0                     1 0 7 #7=(1,10)f32
pnnx.Output              out1                     1 0 6 #6=(12)f32
"""
_PROGRAM = """        with net.create_extractor() as ex:
            ex.input("in0", ncnn.Mat(in0.numpy(), batch_index=0).clone())
            ex.input("in1", ncnn.Mat(in1.numpy(), batch_index=233).clone())

            _, out0 = ex.extract("out0")
            out.append(torch.from_numpy(out0.numpy(batch_index=1)))
"""
_PROBABILITIES = EngineTensor(name="p", type="tensor(float)")
_LOGITS = EngineTensor(name="y", type="tensor(float)")


def test_files_of_the_converter_of_ncnn_tell_layers_sizes_and_batches() -> None:
    assert ncnn.operators_of(_NETWORK) == ["Input", "Convolution", "Tensor.to", "Softmax"]
    assert ncnn.shapes_of_outputs(_SIZES, [_PROBABILITIES, _LOGITS]) == [(1, 10), (12,)]
    assert ncnn.batches_of(_PROGRAM) == {"in0": 0, "in1": 233, "out0": 1}


@pytest.mark.parametrize(
    "sizes", [_SIZES.replace(" #6=(12)f32", ""), _SIZES.replace("(12)", "(?)"), _SIZES[:-50]]
)
def test_an_output_of_unknown_sizes_is_refused_by_ncnn(sizes: str) -> None:
    with pytest.raises(EngineRefusal, match="'y'") as caught:
        ncnn.shapes_of_outputs(sizes, [_PROBABILITIES, _LOGITS])
    assert caught.value.kind == "unsupported"


def test_operators_and_axes_that_ncnn_lacks_are_named() -> None:
    ncnn.refuse_lacking([])
    ncnn.refuse_axes({"x": 4})
    with pytest.raises(EngineRefusal, match=r"Tensor\.to, Det"):
        ncnn.refuse_lacking(["Tensor.to", "Det", "Tensor.to"])
    with pytest.raises(EngineRefusal, match="'x' has 5"):
        ncnn.refuse_axes({"a": 1, "x": 5})


def test_ncnn_converts_at_the_sizes_of_the_case_without_halves() -> None:
    task = EngineTask(
        path=Path("net.onnx"),
        inputs=(
            EngineTensor(name="x", type="tensor(float)", shape=(2, 3)),
            EngineTensor(name="ids", type="tensor(int64)", shape=(4,)),
        ),
        outputs=(_LOGITS,),
        threads=1,
    )
    assert ncnn.converter_arguments(task) == ["inputshape=[2,3]f32,[4]i64", "fp16=0"]


@pytest.mark.parametrize(
    ("item", "word"),
    [
        (EngineTensor(name="x", type="tensor(double)", shape=(1,)), "'x'"),
        (EngineTensor(name="x", type="tensor(float)", shape=(0, 3)), "'x'"),
    ],
)
def test_inputs_that_ncnn_can_not_take_are_refused_before_anything_is_converted(
    item: EngineTensor, word: str
) -> None:
    task = EngineTask(path=Path("net.onnx"), inputs=(item,), outputs=(_LOGITS,), threads=1)
    with pytest.raises(EngineRefusal, match=word) as caught:
        ncnn.Ncnn(task).compile()
    assert caught.value.kind == "unsupported"


class _NoDevice(ModuleType):
    """As much of PyTorch as refuses a device, on a machine with so many GPUs."""

    def __init__(self, gpus: int) -> None:
        super().__init__("torch")
        self.cuda = SimpleNamespace(device_count=lambda: gpus)

    def zeros(self, size: int, *, device: str) -> None:
        raise RuntimeError(f"{size} on {device}")

    def device(self, name: str) -> SimpleNamespace:
        kind, _, index = name.partition(":")
        if kind != "cuda":
            raise RuntimeError(name)
        return SimpleNamespace(type=kind, index=int(index) if index else None)


@pytest.mark.parametrize(
    ("device", "gpus", "step"),
    [
        ("cdua", 2, "--ort-providers=torch:cuda:0"),
        ("cuda:7", 2, "--ort-providers=torch:cuda:1"),
        ("cuda:1", 2, "remove the cause"),
        ("cuda", 0, "https://pytorch.org/get-started"),
    ],
)
def test_a_device_that_pytorch_refuses_gets_the_step_for_its_fault(
    device: str, gpus: int, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", _NoDevice(gpus))
    task = EngineTask(path=Path("m.onnx"), inputs=(), outputs=(), threads=1, device=device)
    with pytest.raises(EngineRefusal) as caught:
        Eager(task).build()
    assert caught.value.kind == "unavailable"
    assert step in caught.value.hint
    assert "--ort-providers=torch:cpu" in caught.value.hint
