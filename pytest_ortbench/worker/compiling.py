"""A provider compiles a model ahead: into a file whose nodes hold what it made (EPContext)."""

from __future__ import annotations

import inspect
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.compilation import DOMAIN, OPERATOR, WAYS, Compilation
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.session_entries import NO_COMPILE
from pytest_ortbench.schema.model_questions import CompileModel
from pytest_ortbench.worker.model_graph import read_graph
from pytest_ortbench.worker.runtime import allowed, load
from pytest_ortbench.worker.session import create, initialise, put_into, session_options
from pytest_ortbench.worker.session_entries import unconfirmed_entries
from pytest_ortbench.worker.state import WorkerState

if TYPE_CHECKING:
    from onnxruntime import SessionOptions

#: Name of the compiled file; what providers write beside it begins with it.
_FILE = "model.onnx"
#: Of larger models what is compiled lies beside the file, which can't hold more than 2 GiB.
_MOST_EMBEDDED = 2**30


def compile_model(question: CompileModel, state: WorkerState) -> Compilation:
    """Compile the file of a case in an empty folder.

    Raises:
        WorkerError: if nothing would prove that a session uses it, or nothing was compiled.
        Exception: what ONNX Runtime raises.
    """
    case, folder = question.case, Path(question.folder)
    state.import_runtime()
    state.enter("compile")
    _require_proof(case)
    threads = case.session.intra_op_num_threads or allowed().threads
    # Loading the provider's libraries is none of compiling.
    initialise(case.provider, threads=threads)
    entries = {key: value for key, value in case.session.entries.items() if key != NO_COMPILE}
    options = session_options(replace(case.session, entries=entries), threads=threads)
    embedded = case.variant.size_bytes < _MOST_EMBEDDED
    target = folder / _FILE
    way = WAYS[0] if hasattr(load()[0], "ModelCompiler") else WAYS[1]
    started = time.perf_counter_ns()
    if way == WAYS[0]:
        _with_compiler(case, options, target, embedded=embedded)
    else:
        _with_session(case, options, target, embedded=embedded)
    compile_ns = time.perf_counter_ns() - started
    return record_of(case, target, way=way, compile_ns=compile_ns)


def _require_proof(case: Case) -> None:
    """Refuse an ONNX Runtime that can't be forbidden to compile in a session.

    Raises:
        WorkerError: if it can't.
    """
    own = replace(case, session=replace(case.session, entries={NO_COMPILE: "1"}))
    doubt = ""
    try:
        unconfirmed = unconfirmed_entries(own).get(NO_COMPILE, "")
        if unconfirmed:
            doubt = f"whether the session option {NO_COMPILE} forbids it is not known: "
            doubt += unconfirmed
    except WorkerError:
        doubt = f"it does not know the session option {NO_COMPILE}, which forbids it"
    if doubt:
        raise case_error(
            f"ONNX Runtime {load()[0].__version__} may compile the model again instead of using "
            f"the compiled file, since {doubt}",
            "Leave --ort-compiled out. To measure a compiled file, name a later ONNX Runtime with "
            "--ort-runtimes",
            phase="compile",
        )


def _with_compiler(case: Case, options: SessionOptions, target: Path, *, embedded: bool) -> None:
    ort, _ = load()
    for name, given in put_into(options, case.provider) or ():
        if name != CPU:  # it stands behind all others
            options.add_provider(name, given)
    further: dict[str, object] = {}
    if "graph_optimization_level" in inspect.signature(ort.ModelCompiler.__init__).parameters:
        # By itself the compiler optimises nothing, as no session would.
        further["graph_optimization_level"] = options.graph_optimization_level
    compiler = ort.ModelCompiler(
        options, case.variant.path, embed_compiled_data_into_model=embedded, **further
    )
    compiler.compile_to_file(str(target))


def _with_session(case: Case, options: SessionOptions, target: Path, *, embedded: bool) -> None:
    for key, value in (
        (WAYS[1], "1"),
        ("ep.context_file_path", str(target)),
        ("ep.context_embed_mode", "1" if embedded else "0"),
    ):
        options.add_session_config_entry(key, value)
    create(case.variant.path, case.provider, options)


def record_of(case: Case, target: Path, *, way: str, compile_ns: int) -> Compilation:
    """Return the record of a file that was compiled.

    Args:
        case: Whose file was compiled.
        target: The compiled file.
        way: One of :data:`~pytest_ortbench.core.compilation.WAYS`.
        compile_ns: What that took.

    Raises:
        WorkerError: if there is no compiled part in it, or no file.
    """
    graph = read_graph(str(target)) if target.is_file() else None
    nodes = [] if graph is None else list(graph.graph.all_nodes())
    compiled = sum((node.op, node.domain) == (OPERATOR, DOMAIN) for node in nodes)
    if not compiled:
        why = "the file that it wrote has no compiled node" if nodes else "it wrote no file"
        raise case_error(
            f"--ort-compiled=on needs a provider that compiles at least a part of the model to a "
            f"file, but {case.provider.name} compiled no part: {why}",
            "Leave --ort-compiled out. To see which nodes the provider takes, run: ortbench models "
            f"inspect {case.model.path} --providers={case.provider.label}"
            if nodes
            else "Leave --ort-compiled out, or name another ONNX Runtime with --ort-runtimes",
            phase="compile",
        )
    folder = target.parent
    beside = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path != target
    )
    return Compilation(
        file=target.name,
        digest=file_digest(target, tuple((name, folder / name) for name in beside)),
        size_bytes=sum((folder / name).stat().st_size for name in (target.name, *beside)),
        external_files=tuple(beside),
        way=way,
        compile_ns=compile_ns,
        compiled_nodes=compiled,
        other_nodes=len(nodes) - compiled,
        made_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
