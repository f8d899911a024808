"""From real native messages to failures that a person can act on."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime, SymbolSize
from pytest_ortbench.core.errors import RAISE_OPEN_FILES
from pytest_ortbench.core.lfs_pointer import PULL
from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.diagnose import (
    Evidence,
    diagnose,
    implied_by,
    missing_library,
    out_of_memory,
)
from pytest_ortbench.schema.protocol import Refusal
from tests.launch import native_messages as said
from tests.results_factory import make_case

CUDA = Provider(alias="cuda", name="CUDAExecutionProvider")
OPENVINO = Provider(alias="openvino", name="OpenVINOExecutionProvider")


def judge(
    text: str,
    *,
    phase: str = "session",
    error: str = "Fail",
    log: str = "",
    provider: Provider | None = None,
    custom_ops: tuple[str, ...] = (),
    numpy: str = "",
    case: Case | None = None,
) -> Failure:
    refusal = Refusal(
        phase=phase,
        error=error,
        text=text,
        version="1.32.0",
        numpy=numpy,
        fed=("x: float32 [2, 6]",),
        declared=("x: tensor(float) ['B', 6]",),
    )
    return diagnose(
        Evidence(refusal=refusal, log=log, provider=provider, custom_ops=custom_ops, case=case)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (said.OPSET_99, ["operator set 99 of ai.onnx", "1.32.0 supports up to 28"]),
        (said.ML_OPSET_99, ["operator set 99 of ai.onnx.ml", "supports up to 5"]),
        (said.IR_99, ["IR version 99", "supports up to 14"]),
        (said.RELU_1, ["no implementation of Relu (operator set 1)"]),
        (said.UNKNOWN_OP, ["operator Blah does not exist in operator set 13"]),
        (said.CUSTOM_OP, ["operator Foo of domain my.ops"]),
    ],
)
def test_what_a_runtime_does_not_know_is_unsupported(text: str, words: list[str]) -> None:
    failure = judge(text)
    assert (failure.kind, failure.phase) == ("unsupported", "session")
    for word in words:
        assert word in failure.message


CPU = Provider(alias="cpu", name="CPUExecutionProvider")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (said.SAME_NAME, "two nodes with same node name (cut)"),
        (said.CYCLE, "the graph is not acyclic"),
        (said.UNDEFINED, "Node input 'nowhere' is not a graph input, initializer, or output of a "),
        (said.ATTRIBUTE, "node 'act' (Relu): Unrecognized attribute: slope for operator Relu"),
        (said.NO_OPSET, "node 'Quant_29' (Quant): No opset import for domain 'made.up.domain'"),
        (said.TWO_TYPES, "Type Error: Type parameter (T) of Optype (Add) bound to "),
        (said.NO_OUTPUT, "Graph output (y) does not exist in the graph"),
        (said.MATRICES, "Node (mm) Op (MatMul) [ShapeInferenceError] Incompatible dimensions "),
    ],
)
def test_a_file_that_breaks_a_rule_of_onnx_is_called_invalid(text: str, words: str) -> None:
    for provider in (None, CPU):  # of a conversion's source, and of a case
        failure = judge(text, provider=provider)
        assert failure.kind == "error"
        before, _, after = failure.message.partition(words)
        assert before in (f"ONNX Runtime calls the model invalid: {mark}" for mark in "'\"")
        assert after.endswith(before[-1])
    # Another provider may have written the graph that is refused.
    assert "calls the model invalid" not in judge(text, provider=OPENVINO).message


def test_custom_operators_name_the_option_that_loads_their_library() -> None:
    assert "--ort-custom-ops=" in judge(said.CUSTOM_OP).hint
    assert "onnxruntime-extensions" in judge(said.EXTENSIONS_OP).hint


def test_a_missing_library_file_and_a_missing_symbol_differ() -> None:
    missing = judge(said.LIBRARY_FILE, error="CustomOpsRefused", custom_ops=("/nope/lib.so",))
    symbol = judge(said.LIBRARY_SYMBOL, error="CustomOpsRefused", custom_ops=("/libs/e.so",))
    short = judge(said.LIBRARY_SHORT, error="CustomOpsRefused", custom_ops=("/libs/t.so",))
    assert "/nope/lib.so" in missing.message
    assert "Install" not in missing.hint
    assert symbol.message.startswith("/libs/e.so ")
    assert "/libs/t.so: " in short.message
    text = said.LIBRARY_FILE.replace("/nope/lib.so: cannot", "libfoo.so.1: cannot")
    needed = judge(text, error="CustomOpsRefused", custom_ops=("/other.so", "/nope/lib.so"))
    assert needed.message.startswith("/nope/lib.so ")
    assert needed.hint.startswith("Install libfoo.so.1. ")
    assert {missing.kind, symbol.kind, short.kind, needed.kind} == {"error"}


def test_an_absent_file_of_operators_is_told_with_the_sides_that_lack_it() -> None:
    case = make_case()
    told = []
    for runtime in (case.runtime, Runtime(label="box", shares_files=False)):
        refusal = Refusal(phase="session", error="CustomOpsAbsent", text="ops/ops.py")
        failure = diagnose(Evidence(refusal=refusal, case=replace(case, runtime=runtime)))
        assert (failure.kind, failure.phase) == ("error", "session")
        assert "ops/ops.py" in failure.message
        told.append("'box'" in failure.message)
    assert told == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        said.RESHAPE,
        said.MATMUL_MISMATCH,
        said.WRONG_RANK,
        said.WRONG_SIZE,
        said.WRONG_TYPE,
        said.GATHER,
    ],
)
def test_a_refused_shape_shows_fed_beside_declared(text: str) -> None:
    failure = judge(text, phase="first")
    assert (failure.kind, failure.phase) == ("unsupported", "first")
    assert "(fed x: float32 [2, 6]; declared x: tensor(float) ['B', 6])" in failure.message
    assert "--ort-dims" in failure.hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (said.WRONG_SIZE, "axis 1 of the input 'x' has size 5, but must have 6"),
        (said.WRONG_RANK, "the input 'x' must have 2 axes, but has 3"),
        (said.MATMUL_MISMATCH, "of the node 'mm' (MatMul): 'MatMul dimension mismatch'"),
    ],
)
def test_a_refused_input_is_named_with_its_size(text: str, what: str) -> None:
    assert f"{what} (fed " in judge(text, phase="first").message


def test_a_missing_input_is_unsupported_too() -> None:
    failure = judge(said.INPUT_MISSING, phase="first", error="ValueError")
    assert failure.kind == "unsupported"


def test_the_same_words_later_on_are_an_error() -> None:
    failure = judge(said.MATMUL_MISMATCH, phase="measure")
    assert (failure.kind, failure.phase) == ("error", "measure")
    assert failure.message.endswith("the node 'mm' (MatMul): 'MatMul dimension mismatch'")


def test_a_failing_device_at_the_first_inference_is_not_a_refused_shape() -> None:
    text = "[ONNXRuntimeError] : 1 : FAIL : CUDA failure 700: an illegal memory access"
    assert judge(text, phase="first").kind == "error"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (said.BUFFER, "Fail"),
        (said.CUDA_MEMORY, "RuntimeException"),
        ("std::bad_alloc", "MemoryError"),
        ("", "MemoryError"),
        (
            "Unable to allocate 7.28 TiB for an array with shape (1000000, 1000000)",
            "_ArrayMemoryError",
        ),
        ("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : CUBLAS_STATUS_ALLOC_FAILED", "X"),
        ("bfc_arena.cc:1 Available memory of 10 is smaller than requested bytes of 20", "Fail"),
    ],
)
def test_memory_errors(text: str, error: str) -> None:
    assert judge(text, phase="first", error=error).kind == "out_of_memory"


def test_words_of_memory_are_found_and_others_not() -> None:
    assert out_of_memory("terminate called after std::bad_alloc\n") == "std::bad_alloc"
    assert out_of_memory("memory pattern planner is off") == ""


@pytest.mark.parametrize(
    "text", [said.PROTOBUF, said.EMPTY, said.NO_FILE, said.EXTERNAL_ESCAPES, said.EXTERNAL_MISSING]
)
def test_files_that_are_no_models_are_errors_on_one_line(text: str) -> None:
    failure = judge(text)
    assert failure.kind == "error"
    assert "\n" not in failure.message
    assert "[ONNXRuntimeError]" not in failure.message
    assert failure.hint


def test_an_escape_of_external_data_is_told_with_its_path() -> None:
    failure = judge(said.EXTERNAL_ESCAPES)
    assert '"../../etc/passwd"' in failure.message
    assert "external data" in failure.hint


def test_external_data_behind_a_link_is_told_from_data_elsewhere() -> None:
    failure = judge(said.EXTERNAL_LINKED)
    assert failure.kind == "error"
    assert failure.hint.startswith("data/w ")


def test_a_provider_that_the_runtime_lacks_names_its_distribution() -> None:
    text = "OpenVINOExecutionProvider is not among CPUExecutionProvider"
    failure = judge(text, error="ProviderMissing", provider=OPENVINO)
    assert failure.kind == "unavailable"
    assert "onnxruntime-openvino" in failure.hint


def test_a_session_without_the_provider_names_the_missing_library() -> None:
    text = "the session runs on CPUExecutionProvider, not on CUDAExecutionProvider"
    failure = judge(text, error="FellBack", log=said.CUDA_LOG, provider=CUDA)
    assert failure.kind == "unavailable"
    assert "libcublasLt.so.13 (CUDA 13)" in failure.message
    assert "onnxruntime-gpu[cuda,cudnn]" in failure.hint


def test_a_session_without_the_provider_gives_the_reason_of_the_log() -> None:
    text = "the session runs on CPUExecutionProvider, not on OpenVINOExecutionProvider"
    failure = judge(text, error="FellBack", log=said.OPENVINO_LOG, provider=OPENVINO)
    assert failure.message.startswith(f"{text}: [OpenVINO] ")


def test_a_session_without_the_provider_and_without_a_word() -> None:
    assert judge("text", error="FellBack", provider=OPENVINO).message.startswith("text, ")


def test_tensorrt_raises_and_its_library_stands_in_the_log() -> None:
    tensorrt = Provider(alias="tensorrt", name="TensorrtExecutionProvider")
    failure = judge(said.TENSORRT, error="RuntimeError", log=said.TENSORRT_LOG, provider=tensorrt)
    assert failure.kind == "unavailable"
    assert "(TensorRT 10)" in failure.message


@pytest.mark.parametrize(
    ("library", "product"),
    [
        ("libcudnn.so.9", "cuDNN 9"),
        ("libcudnn_cnn_infer.so.8", "cuDNN 8"),
        ("libcublasLt.so.11", "CUDA 11"),
        ("libcublas.so.12", "CUDA 12"),
        ("libcudart.so.11.0", "CUDA 11"),
        ("libcufft.so.11", "CUDA 12"),
        ("libnvinfer.so.10", "TensorRT 10"),
        ("libcuda.so.1", "the NVIDIA driver"),
        ("libvulkan.so.1", "the loader of Vulkan's drivers"),
        ("libopenvino.so.2520", ""),
    ],
)
def test_a_library_implies_a_product(library: str, product: str) -> None:
    log = f"error: {library}: cannot open shared object file: No such file or directory"
    assert missing_library(log) == library
    assert implied_by(library) == product


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (said.OPENVINO_OPTION, "RuntimeError"),
        ("CPUExecutionProvider does not know 'foo'; it knows: none", "OptionIgnored"),
    ],
)
def test_an_unknown_provider_option_is_an_error(text: str, error: str) -> None:
    failure = judge(text, error=error)
    assert failure.kind == "error"
    assert "foo" in failure.message
    assert "--ort-provider-option" in failure.hint


def test_a_level_that_this_version_lacks_is_unsupported() -> None:
    failure = judge("ONNX Runtime 1.15.1 has no level 'layout'", error="LevelMissing")
    assert (failure.kind, "--ort-graph-opt" in failure.hint) == ("unsupported", True)


def test_no_onnxruntime() -> None:
    failure = judge("No module named 'onnxruntime'", phase="import", error="ModuleNotFoundError")
    assert failure.kind == "unavailable"
    assert "pip install onnxruntime." in failure.hint


def test_a_half_removed_onnxruntime() -> None:
    failure = judge(
        "the package onnxruntime has no InferenceSession", phase="import", error="BrokenRuntime"
    )
    assert failure.kind == "unavailable"
    assert "Uninstall " in failure.hint


def test_a_numpy_that_does_not_fit_names_both() -> None:
    failure = judge(
        "numpy.core.multiarray failed to import",
        phase="import",
        error="ImportError",
        numpy="2.4.6",
    )
    assert failure.kind == "unavailable"
    assert "numpy 2.4.6" in failure.message


def test_what_a_worker_found_out_itself_is_kept() -> None:
    own = Failure(kind="unsupported", phase="inputs", message="no such type")
    refusal = Refusal(phase="reference", error="WorkerError", text="x", failure=own)
    found = diagnose(Evidence(refusal=refusal))
    assert (found.kind, found.phase, found.message) == (own.kind, "reference", own.message)


def test_anything_else_is_an_error_with_class_and_text() -> None:
    failure = judge("division by zero", phase="accuracy", error="ZeroDivisionError")
    assert (failure.kind, failure.message.split(":")[0]) == ("error", "ZeroDivisionError")


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("number of dimensions must be within [0, 64], indexing result would have 65", 64),
        ("maximum supported dimension for an ndarray is 32, found 33", 32),
        ("maximum supported dimension for an ndarray is currently 64, found 70", 64),
    ],
)
def test_an_output_that_numpy_cant_hold_shows_the_limit(text: str, most: int) -> None:
    failure = judge(text, phase="first", error="ValueError")
    assert failure.kind == "unsupported"
    assert str(most) in failure.message.split()


@pytest.mark.parametrize(
    ("library", "variable"),
    [("libnvinfer.so.10", "LD_LIBRARY_PATH"), ("nvinfer_10.dll", "PATH")],
)
def test_a_library_is_looked_for_where_its_system_does(library: str, variable: str) -> None:
    text = f"{library}: cannot open shared object file: No such file or directory"
    if library.endswith(".dll"):
        text = f'Error loading "C:\\x\\{library}" which is missing.'
    failure = judge(text, provider=CUDA)
    assert library in failure.message
    assert failure.hint.split()[-1] == variable


@pytest.mark.parametrize(
    ("runtime", "step"),
    [
        (Runtime(), "Run: pip install numpy"),
        (Runtime(label="box", command=("ssh", "box")), "In this Python, run: pip install numpy"),
        (
            Runtime(label="old", requirements=("onnxruntime==1.15.1",)),
            "Add numpy to the runtime: '--ort-runtimes=onnxruntime==1.15.1+numpy'",
        ),
    ],
)
def test_what_is_missing_is_installed_where_the_runtime_looks_for_it(
    runtime: Runtime, step: str
) -> None:
    failure = judge(
        "No module named 'numpy'",
        phase="import",
        error="ModuleNotFoundError",
        case=replace(make_case(), runtime=runtime),
    )
    assert failure.hint.startswith(step)
    assert (f"{runtime.label!r}" in failure.message) == (runtime.label != "current")


@pytest.mark.parametrize(
    ("error", "runtime", "step"),
    [
        ("NumpyMismatch", Runtime(), "pip install 'numpy<2'"),
        ("NumpyMismatch", Runtime(label="box", command=("ssh", "box")), "runtime 'box', run: pip "),
        (
            "NumpyMismatch",
            Runtime(label="old", requirements=("numpy==2.0.0", "onnxruntime==1.15.1")),
            "'--ort-runtimes=onnxruntime==1.15.1+numpy<2'",
        ),
        ("BrokenRuntime", Runtime(label="box", command=("ssh", "box")), "'box', do this: "),
        (
            "BrokenRuntime",
            Runtime(label="old", requirements=("onnxruntime==1.15.1",)),
            "'ortbench runtimes remove old'",
        ),
    ],
)
def test_what_does_not_fit_is_mended_where_the_runtime_is(
    error: str, runtime: Runtime, step: str
) -> None:
    case = replace(make_case(), runtime=runtime)
    assert step in judge("as it is", phase="import", error=error, case=case).hint


def test_a_library_that_is_missing_elsewhere_is_told_with_the_runtime() -> None:
    box = Runtime(label="box", command=("ssh", "box"), shares_files=False)
    case = replace(make_case(), runtime=box)
    failure = judge(
        said.LIBRARY_FILE, error="CustomOpsRefused", custom_ops=("/nope/lib.so",), case=case
    )
    assert "'box'" in failure.message


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (("B", "S"), ["--ort-batch-sizes=2", "--ort-dims=S:32", "--ort-inputs="]),
        (("B", 6), ["--ort-batch-sizes=2", "--ort-inputs="]),
        ((2, 6), ["--ort-inputs="]),
    ],
)
def test_only_sizes_that_the_model_leaves_open_are_to_be_set(
    shape: tuple[int | str, ...], options: list[str]
) -> None:
    case = make_case()
    declared = TensorInfo(name="x", type="tensor(float)", shape=shape)
    sized = SymbolSize(symbol="S", size=16, origin="default", how="default")
    fed = InputSpec(
        name="x",
        type="tensor(float)",
        shape=(1, 16),
        hint=ValueHint(kind="normal"),
        resolved=(sized,),
    )
    case = replace(case, model=replace(case.model, inputs=(declared,)), batch=1, inputs=(fed,))
    hint = judge(said.MATMUL_MISMATCH, phase="first", case=case).hint
    assert hint.count("--ort-") == len(options)
    assert all(option in hint for option in options)


def test_no_size_is_advised_that_was_refused() -> None:
    declared = TensorInfo(name="x", type="tensor(float)", shape=("B", "S"))
    case = make_case(batch=8)
    case = replace(case, model=replace(case.model, inputs=(declared,)), inputs=())
    assert "=1 " in judge(said.MATMUL_MISMATCH, phase="first", case=case).hint
    hint = judge(said.MATMUL_MISMATCH, phase="first", case=replace(case, dims={"S": 16})).hint
    assert "--ort-dims=S:16" in hint
    assert "--ort-batch-sizes" not in hint


@pytest.mark.parametrize(
    ("weights", "precision", "step"),
    [
        ("bfloat16", "native", "bfloat16"),
        ("bfloat16", "fp32", "bfloat16"),
        ("float", "bf16", "--ort-precisions"),
        ("int8", "native", "Relu"),
    ],
)
def test_no_precision_is_advised_where_an_operator_lacks_a_type(
    weights: str, precision: str, step: str
) -> None:
    case = make_case()
    case = replace(
        case,
        model=replace(case.model, weight_types={weights: 9}),
        variant=replace(case.variant, precision=precision),
    )
    hint = judge("Could not find an implementation for Relu(14) node", case=case).hint
    assert step in hint
    assert "--ort-precisions=" not in hint


def test_an_operator_that_the_model_lacks_is_said_to_stand_for_another() -> None:
    case = make_case()
    text = "Could not find an implementation for Sqrt(13) node"
    messages = [
        judge(text, case=replace(case, model=replace(case.model, op_types=ops))).message
        for ops in ({"Gelu": 1}, {"Sqrt": 1})
    ]
    assert [message.count("operator") for message in messages] == [2, 1]


@pytest.mark.parametrize(
    ("phase", "batch", "dims", "step"),
    [
        ("session", 1, {}, "--ort-precisions=int8-dynamic"),
        ("first", 64, {}, "--ort-batch-sizes=1"),
        ("first", 1, {"H": 8192}, "--ort-dims"),
        ("first", 1, {}, "more memory"),
    ],
)
def test_what_can_be_smaller_is_made_smaller(
    phase: str, batch: int, dims: dict[str, int], step: str
) -> None:
    case = replace(make_case(batch=batch), dims=dims)
    hint = judge("std::bad_alloc", phase=phase, case=case).hint
    assert step in hint
    assert hint.count("--ort-") == step.count("--ort-")


def test_the_distribution_for_the_provider_is_installed_again() -> None:
    hints = [
        judge("x", phase="import", error="BrokenRuntime", provider=provider).hint
        for provider in (CUDA, OPENVINO)
    ]
    assert ["onnxruntime-gpu" in hint for hint in hints] == [True, False]


def test_a_dll_that_can_not_start_lacks_visual_c() -> None:
    text = "DLL load failed while importing onnxruntime_pybind11_state: A routine failed"
    assert "vc_redist" in judge(text, phase="import", error="ImportError").hint


def test_a_library_that_git_lfs_keeps_is_pulled(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_text("version https://git-lfs.github.com/spec/v1\n")
    text = f"Failed to load library {library} with error: {library}: invalid ELF header"
    failure = judge(text, error="CustomOpsRefused", custom_ops=(str(library),))
    assert failure.hint == PULL


def test_inputs_of_a_file_are_corrected_in_it() -> None:
    hint = ValueHint(kind="normal")
    read = InputSpec(name="x", type="tensor(float)", shape=(2, 6), hint=hint, path="/data/x.npz")
    case = replace(make_case(), inputs=(read,))
    failure = judge(said.WRONG_SIZE, phase="first", case=case)
    assert "/data/x.npz" in failure.hint
    assert "--ort-dims" not in failure.hint


@pytest.mark.parametrize(
    ("runtime", "installs"),
    [
        (Runtime(), True),
        (Runtime(label="old", requirements=("onnxruntime==1.15.1",)), False),
    ],
)
def test_a_runtime_that_was_made_is_not_upgraded_in_place(runtime: Runtime, installs: bool) -> None:
    case = replace(make_case(), runtime=runtime)
    broken = judge("broken", phase="import", error="ImportError", case=case)
    for failure in (judge(said.IR_99, case=case), judge(said.OPSET_99, case=case), broken):
        assert ("pip install" in failure.hint) == installs
        assert ("--ort-runtimes" in failure.hint) == (not installs or failure is broken)


@pytest.mark.parametrize(("opset", "is_old"), [(6, True), (7, False)])
def test_a_model_of_an_old_operator_set_is_to_be_exported_with_a_newer_one(
    opset: int, is_old: bool
) -> None:
    case = make_case()
    old = replace(case, model=replace(case.model, opsets={"ai.onnx": opset}))
    hint = judge(said.RELU_1, case=old).hint
    assert ("Relu" in hint) is not is_old
    assert (f" {opset}," in hint) is is_old


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EMFILE, RAISE_OPEN_FILES),
        (errno.EIO, ""),
    ],
)
def test_the_number_of_a_system_error_is_told_as_what_the_system_says(
    number: int, hint: str
) -> None:
    failure = judge(f"SystemError : {number}", error="RuntimeError")
    assert failure.kind == "error"
    assert os.strerror(number) in failure.message
    assert failure.hint == hint
