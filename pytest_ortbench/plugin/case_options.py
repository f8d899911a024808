"""Options that make the cases: models, and the axes that are crossed with them.

Nothing is imported here that pytest itself has not imported: every start of pytest pays for it.
"""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.option import Keyword, option


class CaseOptions:
    """What the matrix of cases is made of."""

    models: tuple[str, ...] = option(
        (),
        flag="--ort-models",
        kind="list",
        metavar="SPEC",
        help="models: files, globs, folders, zoo:NAME, builtin:NAME, zoo:all "
        "(default: the default set of the catalogue, and models/)",
        reader="pytest_ortbench.plugin.option_readers:read_models",
        to="request.models",
        keyword=Keyword(help="model specifications, texts or paths", takes="models"),
    )
    providers: tuple[str, ...] = option(
        ("cpu",),
        flag="--ort-providers",
        kind="list",
        metavar="SPEC",
        help="execution providers: all, or cpu, cuda:1, openvino:GPU, tensorrt … or full names; "
        "chains of them, tensorrt~cuda~cpu (default: cpu)",
        reader="pytest_ortbench.plugin.option_readers:read_providers",
        to="request.providers",
        keyword=Keyword(help="execution providers", takes="texts", example="['cpu']"),
    )
    endpoint: str = option(
        "",
        flag="--ort-endpoint",
        metavar="URL",
        help="also measure the model behind a service, over the network, and with --ort-load "
        "under load: http://HOST:PORT/v2/models/NAME/infer, grpc://HOST:PORT/NAME, "
        "http://HOST:PORT/v1/completions of language models, or custom:FILE.py:FUNCTION",
        reader="pytest_ortbench.planning.endpoints:read_endpoint",
        to="request.endpoint",
    )
    endpoint_encodings: tuple[str, ...] = option(
        (),
        flag="--ort-endpoint-encoding",
        kind="list",
        metavar="HOW",
        help="how tensors are written to the endpoint: binary, json, or both, each measured "
        "(default: binary where the service says that it takes it)",
        reader="pytest_ortbench.planning.endpoints:read_encodings",
        rule="pytest_ortbench.planning.endpoints:refuse_without_endpoint",
        to="request.endpoint_encodings",
    )
    precisions: tuple[str, ...] = option(
        ("native",),
        flag="--ort-precisions",
        kind="list",
        metavar="SPEC",
        help="precisions: native (the file as it is), fp32, fp16, bf16, int8-dynamic, "
        "int8-static, int4, cleaned, simplified, optimized, or names of "
        "[tool.ortbench.precisions] and of own variants "
        "(default: native, and the model's own variants)",
        reader="pytest_ortbench.plugin.option_readers:read_precisions",
        to="request.precisions",
        keyword=Keyword(help="precisions", takes="texts", example="['fp32']"),
    )
    #: Here and below: empty where nobody asked for one.
    batch_sizes: tuple[int, ...] = option(
        (),
        flag="--ort-batch-sizes",
        kind="list",
        metavar="N,N",
        help="sizes of the batch axis: 1,8 (default: 1, or what the model fixes)",
        reader="pytest_ortbench.plugin.option_readers:read_whole_numbers",
        to="request.batch_sizes",
        keyword=Keyword(help="values of the batch axis", takes="numbers"),
    )
    dims: dict[str, tuple[int, ...]] = option(
        {},
        flag="--ort-dims",
        kind="list",
        metavar="NAME:V[:V]",
        help="sizes of symbolic dimensions; several make an axis: seq:128:512",
        reader="pytest_ortbench.plugin.option_readers:read_sizes",
        to="request.dims",
        keyword=Keyword(help="values of symbolic dimensions, {'seq': [128, 512]}", takes="sizes"),
    )
    #: ``None`` for drawn ones.
    inputs: Path | None = option(
        None,
        flag="--ort-inputs",
        kind="path",
        metavar="PATH",
        help="real inputs: .npz, folder of .npy, test_data_set_N, folder of JPEG, PNG or WAV "
        "files, text file with one example per line (default: random, with a fixed seed)",
        reader="pytest_ortbench.core.option_text:read_input_path",
        to="request.inputs",
        keyword=Keyword(help="real inputs, 'photos/'", takes="data", example="'photos/'"),
    )
    preprocess: dict[str, str] = option(
        {},
        flag="--ort-preprocess",
        kind="list",
        metavar="K=V",
        help="how photos, sounds and texts are converted to values: size, resize, layout, color, "
        "scale, mean, std, rate, length (default: from the model's metadata and "
        "preprocessor_config.json)",
        reader="pytest_ortbench.plugin.option_readers:read_preparation",
        to="request.preprocess",
        keyword=Keyword(
            help="how files become values, {'scale': '1/255'}",
            takes="data",
            example="{'scale': '1/255'}",
        ),
    )
    runtimes: tuple[str, ...] = option(
        ("current",),
        flag="--ort-runtimes",
        kind="list",
        metavar="SPEC",
        help="runtimes to measure in: current, auto, requirements joined by + "
        "(onnxruntime==1.30.0+onnxruntime-qnn), or a configured name (default: current)",
        reader="pytest_ortbench.plugin.option_readers:read_runtimes",
    )
    threads: tuple[int, ...] = option(
        (),
        flag="--ort-threads",
        kind="list",
        metavar="N,N",
        help="intra-op threads (default: one for each physical core that the process may use)",
        reader="pytest_ortbench.plugin.option_readers:read_counts",
        to="request.threads",
        keyword=Keyword(help="intra-op threads", takes="numbers"),
    )
    graph_opts: tuple[str, ...] = option(
        (),
        flag="--ort-graph-opt",
        kind="list",
        metavar="LEVEL",
        help="graph optimisation: disable, basic, extended, layout, all (default: all)",
        reader="pytest_ortbench.plugin.option_readers:read_graph_levels",
        to="request.graph_opts",
    )
    concurrency: tuple[int, ...] = option(
        (),
        flag="--ort-concurrency",
        kind="list",
        metavar="N,N",
        help="callers on each session at a time (default: 1)",
        reader="pytest_ortbench.plugin.option_readers:read_counts",
        to="request.concurrency",
    )
    sessions: tuple[int, ...] = option(
        (),
        flag="--ort-sessions",
        kind="list",
        metavar="N,N",
        help="sessions in one process, each with its callers (default: 1)",
        reader="pytest_ortbench.plugin.option_readers:read_counts",
        to="request.sessions",
    )
    calls: tuple[str, ...] = option(
        ("sync",),
        flag="--ort-calls",
        kind="list",
        metavar="HOW",
        help="ways of calling: sync (run), async (run_async, with --ort-concurrency in flight) "
        "(default: sync)",
        reader="pytest_ortbench.plugin.option_readers:read_ways_of_calling",
        to="request.calls",
    )
    spinning: tuple[str, ...] = option(
        (),
        flag="--ort-spinning",
        kind="list",
        metavar="on,off",
        help="whether threads spin while they wait for work: faster, but needs more CPU time "
        "(default: on, as in ONNX Runtime)",
        reader="pytest_ortbench.plugin.option_readers:read_switches",
        to="request.spinning",
    )
    tuning: tuple[str, ...] = option(
        (),
        flag="--ort-tuning",
        kind="list",
        metavar="on,off",
        help="whether cuda, tensorrt, rocm, migraphx and qnn search for the fastest way before "
        "they compute (default: what each does by itself)",
        reader="pytest_ortbench.plugin.option_readers:read_switches",
        to="request.tuning",
    )
    fix_dims: tuple[str, ...] = option(
        (),
        flag="--ort-fix-dims",
        kind="list",
        metavar="on,off",
        help="whether the session is told the sizes of open dimensions, so that it may be built "
        "for them (default: on for providers that need it: qnn, coreml)",
        reader="pytest_ortbench.plugin.option_readers:read_switches",
        to="request.fix_dims",
    )
    io: tuple[str, ...] = option(
        ("end-to-end",),
        flag="--ort-io",
        kind="list",
        metavar="MODE",
        help="where inputs and outputs are: end-to-end (host arrays), device (default: end-to-end)",
        reader="pytest_ortbench.plugin.option_readers:read_io_modes",
        to="request.io",
    )
    compiled: tuple[str, ...] = option(
        (),
        flag="--ort-compiled",
        kind="list",
        metavar="off,on",
        help="measure the model as it is (off), or as the provider compiled it ahead (on: an "
        "EPContext model, kept in the user's cache); both make two rows (default: off)",
        reader="pytest_ortbench.plugin.option_readers:read_switches",
        to="request.compiled",
    )
    session_options: dict[str, str] = option(
        {},
        flag="--ort-session-option",
        kind="list",
        metavar="K=V",
        help="session option or config entry that this ONNX Runtime knows; recorded",
        reader="pytest_ortbench.plugin.option_readers:read_session_options",
        to="request.session_options",
    )
    provider_options: dict[str, dict[str, str]] = option(
        {},
        flag="--ort-provider-option",
        kind="list",
        metavar="ALIAS.K=V",
        help="provider option that the provider documents; recorded",
        reader="pytest_ortbench.plugin.option_readers:read_provider_settings",
        to="request.provider_options",
    )
    exporter: dict[str, str] = option(
        {},
        flag="--ort-exporter",
        kind="list",
        metavar="NAME|K=V",
        help="how sources are exported to ONNX: for PyTorch dynamo (default) or torchscript; and "
        "opset=N",
        reader="pytest_ortbench.plugin.option_readers:read_exporter_settings",
        to="request.exporter",
    )
    custom_ops: tuple[str, ...] = option(
        (),
        flag="--ort-custom-ops",
        kind="list",
        metavar="LIB",
        help="library of custom operators, or a Python file that defines them with onnx_op of "
        "onnxruntime-extensions",
        reader="pytest_ortbench.plugin.option_readers:read_libraries",
        rule="pytest_ortbench.plugin.option_readers:refuse_absent_libraries_here",
        to="request.custom_ops",
    )
