"""What ONNX Runtime and its providers really said, word for word; paths shortened."""

from __future__ import annotations

RELU_1 = (
    "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : "
    "Could not find an implementation for Relu(1) node with name ''"
)
OPSET_99 = (
    "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/onnxruntime/core/graph/"
    "model_load_utils.h:46 void onnxruntime::model_load_utils::ValidateOpsetForDomain("
    "const std::unordered_map<std::__cxx11::basic_string<char>, int>&, "
    "const onnxruntime::logging::Logger&, bool, const std::string&, int) ONNX Runtime only "
    "*guarantees* support for models stamped with official released onnx opset versions. "
    "Opset 99 is under development and support for this is limited. The operator schemas and or "
    "other functionality may change before next ONNX release and in this case ONNX Runtime will "
    "not guarantee backward compatibility. Current official support for domain ai.onnx is till "
    "opset 28.\n"
)
ML_OPSET_99 = OPSET_99.replace(
    "domain ai.onnx is till opset 28", "domain ai.onnx.ml is till opset 5"
)
IR_99 = (
    "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/onnxruntime/core/graph/model.cc:256 "
    "onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, "
    "const onnxruntime::IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::logging::Logger&, "
    "const onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported IR "
    "version: 14\n"
)
CUSTOM_OP = (
    "[ONNXRuntimeError] : 1 : FAIL : Fatal error: my.ops:Foo(-1) is not a registered function/op"
)
EXTENSIONS_OP = CUSTOM_OP.replace("my.ops:Foo", "ai.onnx.contrib:BertTokenizer")
UNKNOWN_OP = (
    "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. In Node, "
    '("", Blah, "", -1) : ("x": tensor(float),) -> ("y": tensor(float),) , '
    "Error No Op registered for Blah with domain_version of 13"
)
SAME_NAME = (
    "[ONNXRuntimeError] : 1 : FAIL : Load model from /models/m.onnx failed:"
    "This is an invalid model. Error: two nodes with same node name (cut)."
)
CYCLE = SAME_NAME.replace("two nodes with same node name (cut)", "the graph is not acyclic")
UNDEFINED = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Load model from undefined.onnx failed:"
    "Invalid model. Node input 'nowhere' is not a graph input, initializer, or output of a "
    "previous node."
)
ATTRIBUTE = (
    "[ONNXRuntimeError] : 10 : INVALID_GRAPH : Load model from attribute.onnx failed:"
    'This is an invalid model. In Node, ("act", Relu, "", -1) : ("x": tensor(float),) -> ("r",) , '
    "Error Unrecognized attribute: slope for operator Relu"
)
#: The reason stands behind the path and the types of all that the node takes.
NO_OPSET = (
    "[ONNXRuntimeError] : 10 : INVALID_GRAPH : Load model from "
    + "/home/somebody/a/folder/that/lies/deep" * 10
    + "/channels_last.onnx failed:This is an invalid model. In Node, "
    '("Quant_29", Quant, "made.up.domain", -1) : ("Mul_30_out0": tensor(float),'
    '"Quant_29_param0": tensor(float),"Quant_29_param1": tensor(float),) -> '
    "(\"Mul_31_out0\": tensor(float),) , Error No opset import for domain 'made.up.domain'"
)
TWO_TYPES = (
    "[ONNXRuntimeError] : 1 : FAIL : Load model from types.onnx failed:Type Error: Type parameter "
    "(T) of Optype (Add) bound to different types (tensor(float) and tensor(int64) in node (mixed)."
)
NO_OUTPUT = (
    "[ONNXRuntimeError] : 1 : FAIL : Load model from nooutput.onnx failed:"
    "/onnxruntime_src/onnxruntime/core/graph/graph.cc:1617 void "
    "onnxruntime::Graph::InitializeStateFromModelFileGraphProto() This is an invalid model. "
    "Graph output (y) does not exist in the graph.\n"
)
MATRICES = (
    "[ONNXRuntimeError] : 1 : FAIL : Load model from matmul.onnx failed:Node (mm) Op (MatMul) "
    "[ShapeInferenceError] Incompatible dimensions for matrix multiplication"
)
PROTOBUF = (
    "[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : "
    "Load model from text.onnx failed:Protobuf parsing failed."
)
EMPTY = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : "
    "Load model from empty.onnx failed:No graph was found in the protobuf."
)
NO_FILE = (
    "[ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from nofile.onnx failed:"
    "Load model nofile.onnx failed. File doesn't exist"
)
EXTERNAL_ESCAPES = (
    "[ONNXRuntimeError] : 1 : FAIL : External data path validation failed for initializer: w. "
    'Error: External data path escapes model directory. External data path: "../../etc/passwd" '
    'resolved path: "/etc/passwd" allowed directory: "."'
)
EXTERNAL_LINKED = (
    "[ONNXRuntimeError] : 1 : FAIL : External data path validation failed for initializer: w. "
    'Error: External data path escapes model directory. External data path: "data/w" '
    'resolved path: "/blobs/2222" allowed directory: "/models"'
)
EXTERNAL_MISSING = (
    "[ONNXRuntimeError] : 1 : FAIL : External data path validation failed for initializer: w. "
    "Error: tensorprotoutils.cc:619 ValidateExternalDataPathFromDir External data path does not "
    'exist: "/models/ext.bin"'
)
RESHAPE = (
    "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Reshape node. "
    "Name:'rs' Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/"
    "reshape_helper.h:91 onnxruntime::ReshapeHelper::ReshapeHelper("
    "const onnxruntime::TensorShape&, onnxruntime::TensorShapeVector&, bool) "
    "input_shape_size == requested_shape_size was false. The input tensor cannot be reshaped to "
    "the requested shape. Input shape:{2,6}, requested shape:{1,2,3}\n"
)
MATMUL_MISMATCH = (
    "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running MatMul node. "
    "Name:'mm' Status Message: matmul_helper.h:59 Compute MatMul dimension mismatch"
)
WRONG_RANK = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid rank for input: x Got: 3 Expected: 2 "
    "Please fix either the inputs/outputs or the model."
)
WRONG_SIZE = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the "
    "following indices\n index: 1 Got: 5 Expected: 6\n Please fix either the inputs/outputs or "
    "the model."
)
WRONG_TYPE = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. "
    "Actual: (tensor(double)) , expected: (tensor(float))"
)
GATHER = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running "
    "Gather node. Name:'ga' Status Message: indices element out of data bounds, idx=99 must be "
    "within the inclusive range [-10,9]"
)
INPUT_MISSING = "Required inputs (['x']) are missing from input feed ([])."
BUFFER = (
    "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running ConstantOfShape "
    "node. Name:'cs' Status Message: /onnxruntime_src/onnxruntime/core/framework/"
    "bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, "
    "onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 35184372088832\n"
)
CUDA_MEMORY = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : CUDA error cudaErrorMemoryAllocation:"
    "out of memory"
)
LIBRARY_FILE = (
    "[ONNXRuntimeError] : 1 : FAIL : Failed to load library /nope/lib.so with error: "
    "/nope/lib.so: cannot open shared object file: No such file or directory"
)
LIBRARY_SYMBOL = (
    "[ONNXRuntimeError] : 1 : FAIL : Failed to get symbol RegisterCustomOps with error: "
    "/libs/e.so: undefined symbol: RegisterCustomOps"
)
LIBRARY_SHORT = (
    "[ONNXRuntimeError] : 1 : FAIL : Failed to load library /libs/t.so with error: "
    "/libs/t.so: file too short"
)
CUDA_LOG = (
    "\x1b[1;31m2026-11-27 22:03:44.145759770 [E:onnxruntime:Default, provider_bridge_ort.cc:2458 "
    "operator()] /onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:2043 "
    "onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : "
    "Failed to load library /site-packages/onnxruntime/capi/libonnxruntime_providers_cuda.so with "
    "error: libcublasLt.so.13: cannot open shared object file: No such file or directory\n\x1b[m\n"
    "\x1b[0;93m2026-11-27 22:03:44.145879137 [W:onnxruntime:Default, "
    "onnxruntime_pybind_state.cc:1295 CreateExecutionProviderFactoryInstance] Failed to create "
    "CUDAExecutionProvider. Require cuDNN 9.* and CUDA 13.*. Please install all dependencies as "
    "mentioned in the GPU requirements page, make sure they're in the PATH, and that your GPU is "
    "supported.\x1b[m\n"
)
TENSORRT = (
    "/onnxruntime_src/onnxruntime/python/onnxruntime_pybind_state.cc:729 void "
    "onnxruntime::python::RegisterTensorRTPluginsAsCustomOps(PySessionOptions&, "
    "const onnxruntime::ProviderOptions&) Please install TensorRT libraries as mentioned in the "
    "GPU requirements page, make sure they're in the PATH or LD_LIBRARY_PATH, and that your GPU "
    "is supported.\n"
)
TENSORRT_LOG = CUDA_LOG.replace("providers_cuda", "providers_tensorrt").replace(
    "libcublasLt.so.13", "libnvinfer.so.10"
)
OPENVINO_LOG = (
    "\x1b[1;31m2026-11-27 22:03:45.986816136 [E:onnxruntime:Default, provider_bridge_ort.cc:2310 "
    "Create] /onnxruntime/onnxruntime/core/providers/openvino/openvino_provider_factory.cc:141 "
    "std::string onnxruntime::openvino_ep::ParseDeviceType(std::shared_ptr<OVCore>, "
    "const onnxruntime::ProviderOptions&) [ERROR] [OpenVINO] Device GPU is not available\n"
    "\x1b[m\n\x1b[0;93m2026-11-27 22:03:45.986842655 [W:onnxruntime:Default, "
    "onnxruntime_pybind_state.cc:1066 CreateExecutionProviderFactoryInstance] Failed to create "
    "OpenVINOExecutionProvider. Please refer "
    "https://onnxruntime.ai/docs/execution-providers/OpenVINO-ExecutionProvider.html#requirements "
    "to ensure all dependencies are met.\x1b[m\n"
)
OPENVINO_OPTION = (
    "/onnxruntime/onnxruntime/python/onnxruntime_pybind_state.cc:1053 "
    "std::shared_ptr<onnxruntime::IExecutionProviderFactory> "
    "onnxruntime::python::CreateExecutionProviderFactoryInstance("
    "const onnxruntime::SessionOptions&, const std::string&, "
    "const onnxruntime::ProviderOptionsMap&) Invalid OpenVINO EP option: foo\n"
)
