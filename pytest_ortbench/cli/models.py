"""``ortbench models``: what can be measured by name, getting it, looking into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from pytest_ortbench.cli.arguments import custom_ops_option, epilog
from pytest_ortbench.cli.readiness import OPS_CONFIG, try_providers, write_operators
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.errors import ModelError, OrtbenchError
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.models.arithmetic import count_file
from pytest_ortbench.models.builders.registry import BUILDERS
from pytest_ortbench.models.catalogue import DEFAULT_SET, project_catalogue, shipped_catalogue
from pytest_ortbench.models.ort_file import is_ort_file
from pytest_ortbench.models.resolve import resolve_models
from pytest_ortbench.planning.described import described
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.sizes import RefusedCombination
from pytest_ortbench.report.arithmetic import counted_operators, work_facts
from pytest_ortbench.report.weights import weight_notes, zeros_text
from pytest_ortbench.session import Session
from pytest_ortbench.store.writable import refuse_to_replace, require_writable_file

#: So many operator types are listed before the rest is counted.
_OPERATORS = 12
#: Values of a constant or of a choice that are shown.
_CHOICES = 6
#: Characters of a licence in the list.
_LICENCE = 20


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",
    epilog=epilog(
        "ortbench models",
        "ortbench models fetch silero-vad",
        "ortbench models inspect model.onnx",
        "pytest --pyargs pytest_ortbench.suites --ort-models=zoo:silero-vad",
    ),
)
@click.pass_context
def command(context: click.Context) -> int:
    """List, fetch and inspect models.

    NAME is zoo:NAME (a real network, fetched once and checked by its digest), builtin:NAME (built
    on the spot with drawn weights) or a name of the project's models/catalogue.toml; zoo: and
    builtin: may be left out here.
    """
    if context.invoked_subcommand is None:
        return _list()
    return ExitCode.FINE


@command.command("list", epilog=epilog("ortbench models list"))
def list_models() -> int:
    """List the models that have a name; * marks those that are measured by default."""
    return _list()


@command.command(epilog=epilog("ortbench models fetch silero-vad builtin:resnet50"))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> int:
    """Fetch or build models now, so that measuring them needs no network later."""
    code = ExitCode.FINE
    for model in _resolve(names):
        if isinstance(model, Model):
            licence = _licence(model.source)
            about = f"{_size(model.size_bytes)}{f', {licence}' if licence else ''}"
            say(f"{model.source}: {model.path} ({about})")
        else:
            code = ExitCode.WRONG_CALL
    return code


@command.command(
    "inspect",
    epilog=epilog(
        "ortbench models inspect model.onnx",
        "ortbench models inspect zoo:silero-vad",
        "ortbench models inspect model.onnx --providers=qnn:htp --runtimes=onnxruntime-qnn",
        "ortbench models inspect model.onnx --ops-config=required_operators.config",
    ),
)
@click.argument("names", metavar="PATH|NAME...", nargs=-1, required=True)
@click.option(
    "--providers",
    metavar="LIST",
    help="Try a session on each of these, as for --ort-providers, and say which nodes it leaves.",
)
@click.option(
    "--runtimes",
    metavar="SPEC",
    multiple=True,
    default=("current",),
    help="Where to try them, as for --ort-runtimes; repeatable. [default: current]",
)
@custom_ops_option
@click.option(
    OPS_CONFIG,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the operators and types that a reduced build of ONNX Runtime needs for these "
    "models to this file.",
)
def inspect_models(
    names: tuple[str, ...],
    providers: str | None,
    runtimes: tuple[str, ...],
    custom_ops: tuple[Path, ...],
    ops_config: Path | None,
) -> int:
    """Say what a model takes, what it holds, and what it would be fed by default.

    With --providers a session is made on each, and every node that the provider leaves to another
    one is named, with what fixes it where that was found: fixed sizes, another type, an older
    operator set. Nothing is measured.

    Exit code 1 if a provider leaves a node or refuses the model, 2 if something can't be read or
    tried.
    """
    if ops_config is not None:
        require_writable_file(ops_config, OPS_CONFIG)
    libraries = tuple(str(path.absolute()) for path in custom_ops)
    codes: list[int] = []
    inspected: list[Model] = []
    for index, resolved in enumerate(_resolve(names)):
        model = None if resolved is None else _with_interface(resolved, libraries)
        if model is None:
            codes.append(ExitCode.WRONG_CALL)
            continue
        if index:
            say("")
        say(model.name)
        say(table([list(row) for row in _facts(model)], indent=2))
        inspected.append(model)
    if ops_config is not None:
        read = [file for model in inspected for file in model.files]
        refuse_to_replace(ops_config, read, OPS_CONFIG)
    if ops_config is not None and codes:
        warn(f"ortbench: {ops_config} is not written: a model could not be read")
    elif ops_config is not None:
        codes.append(write_operators(inspected, ops_config, runtimes, libraries))
    if providers is not None and inspected:
        specs = [_full_name(name) for name in names]
        codes.append(try_providers(specs, providers, runtimes, libraries))
    return max(codes, default=ExitCode.FINE)


def _list() -> int:
    rows = []
    for info in BUILDERS.values():
        mark = "*" if info.name in DEFAULT_SET else ""
        size = f"{_count(info.parameters)} parameters"
        rows.append(
            [
                f"builtin:{info.name}{mark}",
                size,
                "Apache-2.0",
                _sizes(info.default_dims),
                info.description,
            ]
        )
    rows += [
        [f"zoo:{entry.name}", _size(entry.size_bytes), _short(entry.licence), _sizes(entry.dims),
         entry.description]
        for entry in shipped_catalogue().values()
    ]  # fmt: skip
    rows += [
        [f"{entry.name}*", _size(entry.size_bytes), _short(entry.licence), _sizes(entry.dims),
         entry.description or entry.origin]
        for entry in project_catalogue(Path.cwd()).values()
    ]  # fmt: skip
    say(table(rows, header=["name", "size", "licence", "dims", "what it is"]))
    say("* measured where no model is named")
    return ExitCode.FINE


def _short(licence: str) -> str:
    """A licence fit for a column; inspect and fetch show the whole."""
    if len(licence) <= _LICENCE:
        return licence or "-"
    return licence[: _LICENCE - 1].rsplit(" ", 1)[0] + "…"


def _licence(source: str) -> str:
    """Licence of a model of the catalogue, as its source states it; empty for others."""
    kind, _, name = source.partition(":")
    entry = shipped_catalogue().get(name) if kind == "zoo" else None
    return entry.licence if entry else ""


def _count(number: int) -> str:
    for factor, name in ((1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{significant(number / factor, 3)} {name}"
    return str(number)


def _resolve(names: tuple[str, ...]) -> Iterator[Model | None]:
    """Each model that the names stand for; ``None``, and a line, for one that can't be had."""
    specs = [_full_name(name) for name in names]
    for model in resolve_models(specs, root=Path.cwd(), notify=warn, place="models"):
        if isinstance(model, Model):
            yield model
        else:
            warn(f"ortbench: {' '.join(str(model.error).split())}")
            yield None


def _with_interface(model: Model, libraries: tuple[str, ...]) -> Model | None:
    """The model as a session describes it, if nothing else can; ``None``, and a line, if not."""
    try:
        with Session(Path.cwd(), notify=warn) as session:
            return described(model, session.launcher, libraries)
    except ModelError as error:
        warn(f"ortbench: {' '.join(str(error).split())}")
        return None


def _full_name(name: str) -> str:
    """Put ``zoo:`` or ``builtin:`` in front where it was left out."""
    if Path(name).exists() or name in project_catalogue(Path.cwd()):
        return name
    if name in shipped_catalogue():
        return f"zoo:{name}"
    return f"builtin:{name}" if name in BUILDERS else name


def _facts(model: Model) -> Iterator[tuple[str, str]]:
    yield "file", model.path
    yield "source", model.source
    external = (
        f", including {len(model.external_files)} external files" if model.external_files else ""
    )
    yield "size", f"{_size(model.size_bytes)}{external}"
    if _licence(model.source):
        yield "licence", _licence(model.source)
    yield "SHA-256", model.digest
    if not is_ort_file(Path(model.path)):
        opsets = ", ".join(f"{domain} {version}" for domain, version in model.opsets.items())
        version = model.ir_version or "unknown"
        yield "format", f"IR version {version}; operator sets: {opsets or 'none'}"
        yield "weights", f"{model.parameters:,}{_zeros(model)}"
        yield "nodes", f"{model.nodes:,}: {counted_operators(model.op_types, _OPERATORS)}"
    for tensor in model.inputs:
        yield "input", _tensor(tensor)
    for tensor in model.outputs:
        yield "output", _tensor(tensor)
    for label, sizes in (("dims", model.default_dims), ("fixed by the graph", model.implied_dims)):
        if sizes:
            yield label, _sizes(sizes)
    for name, sizes in model.workloads.items():
        yield "workload", f"{name}: {_sizes(sizes)}"
    if model.random_ops:
        yield "random", f"{', '.join(model.random_ops)}: outputs can't be compared"
    for line in _fed(model):
        yield "fed", line
    yield from _work(model)
    for part in model.compiled:
        yield "compiled for", f"{part.text}: {counted(part.nodes, 'node')}"
    for note in (*weight_notes(model), *model.notes):
        yield "note", note


def _zeros(model: Model) -> str:
    """The share of zeros among the weights, and what that saves where they were pruned."""
    zeros = zeros_text(model)
    packed = model.compressed_bytes
    compressed = "" if packed is None else f"{_size(packed)} compressed"
    return "".join(f", {part}" for part in (zeros, compressed) if part)


def _fed(model: Model) -> Iterator[str]:
    """What one inference would be fed by default, and how each size came about."""
    try:
        specs = resolve_inputs(model, batch=None, dims={})
    except OrtbenchError as error:
        yield str(error)
        return
    except RefusedCombination as refusal:
        yield refusal.failure.message
        return
    for spec in specs:
        how = f" ({spec.sizes_text})" if spec.sizes_text else ""
        why = f", {spec.hint.why}" if spec.hint.why else ""
        yield f"{spec.name} {list(spec.shape)}{how}: {_values(spec.hint)}{why}"


def _work(model: Model) -> Iterator[tuple[str, str]]:
    """What one inference has to do, at the sizes that it would be fed."""
    try:
        specs = resolve_inputs(model, batch=None, dims={})
        work = count_file(Path(model.path), {spec.name: spec.shape for spec in specs})
    except (OrtbenchError, RefusedCombination):
        return  # what is fed says why already
    yield from work_facts(work)


def _values(hint: ValueHint) -> str:
    """What is fed: ``normal``, ``constant 0.5``, ``choice of 1, 2``."""
    if hint.kind not in ("constant", "choice") or not hint.choices:
        return hint.kind
    more = ", …" if len(hint.choices) > _CHOICES else ""
    word = "constant" if hint.kind == "constant" else "choice of"
    return f"{word} {', '.join(hint.choices[:_CHOICES])}{more}"


def _tensor(tensor: TensorInfo) -> str:
    # Sequences and maps have no shape; a tensor without one may have any rank.
    shape = "of any rank" if tensor.type.startswith("tensor") else ""
    if tensor.shape is not None:
        shape = "[" + ", ".join("?" if size is None else str(size) for size in tensor.shape) + "]"
    optional = "(optional)" if tensor.optional else ""
    return " ".join(part for part in (f"{tensor.name}:", tensor.type, shape, optional) if part)


def _sizes(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}:{size}" for name, size in sizes.items()) or "-"


def _size(size_bytes: int) -> str:
    return format_amount(size_bytes, "bytes") if size_bytes else "-"
