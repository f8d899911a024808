"""``ortbench convert``: the ONNX file of a source, and nothing measured."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.files import writing
from pytest_ortbench.cli.terminal import ExitCode, say, step
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.model_spec import is_onnx_file
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.core.whole_file import make_folder
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.planning.axes import parse_exporter
from pytest_ortbench.session import Session


@click.command(
    epilog=epilog(
        "ortbench convert net.py:build --output=net.onnx",
        "ortbench convert net.pt2 --output=net.onnx --runtimes=torch+onnxscript",
    )
)
@click.argument("source")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The ONNX file to write; its external data is written beside it.",
)
@click.option(
    "--runtimes",
    default="current",
    show_default=True,
    help="Further runtimes that may contain the framework, as for --ort-runtimes.",
)
@click.option(
    "--exporter",
    "--ort-exporter",
    "exporter",
    metavar="NAME|K=V",
    multiple=True,
    help="How it is exported, as for pytest: dynamo or torchscript for PyTorch, and opset=N.",
)
def command(source: str, output: Path, runtimes: str, exporter: tuple[str, ...]) -> int:
    """Export a SOURCE to ONNX, as a run would that is given it as a model.

    SOURCE is FILE.py:FUNCTION, where the function returns a model of a framework and example
    inputs, or a file or folder of a framework's own. It is a program, and is run.
    """
    if not is_onnx_file(output):
        example = output / "model.onnx" if output.is_dir() else output.with_suffix(".onnx")
        raise UsageError(
            f"an ONNX file can't be written as {output.suffix or 'a file without a suffix'}",
            place=f"--output={output}",
            hint=f"Name a file that ends in .onnx, e.g. --output={example}",
        )
    with Session(Path.cwd(), notify=step, runtimes=runtimes.split(",")) as session:
        settings = parse_exporter(exporter, place="--exporter")
        kept = session.planner.exported(source, place="SOURCE", settings=settings)
    with writing(output, option="--output"):
        make_folder(output.absolute().parent)
        model = read_model(kept.path, name=source, source="export")
        for name in model.external_files:
            make_folder((output.parent / name).absolute().parent)
            shutil.copyfile(kept.path.parent / name, output.parent / name)
        shutil.copyfile(kept.path, output)
    versions = kept.source.versions
    by = f"{kept.source.exporter} {versions.get(kept.source.exporter, '')}".strip()
    say(f"{output}: {format_amount(model.size_bytes, 'bytes')}, {source} exported by {by}")
    say(f"  takes {_tensors(model.inputs)}")
    say(f"  gives {_tensors(model.outputs)}")
    for note in kept.notes:
        say(f"  {note}")
    return ExitCode.FINE


def _tensors(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(
        f"{info.name}: {info.type} {[_size(size) for size in info.shape or ()]}".replace("'", "")
        for info in infos
    )


def _size(size: int | str | None) -> str:
    return "?" if size is None else str(size)
