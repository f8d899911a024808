"""ncnn: the file converted once for the sizes of the case, and one network for each session."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import says
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.engines.seam import (
    Engine,
    EngineRefusal,
    EngineTask,
    EngineTensor,
    Inference,
    require_types,
    without_engine,
)

_ALIAS = "ncnn"
#: Makes one file of a model in a process of its own: the converter reads weights beside the file
#: wrongly, and says nothing of it.
_JOIN = "import sys, onnx; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])"
#: How the converter spells the types of inputs, and what ncnn reads them as.
_INPUTS = {
    "tensor(float)": ("f32", "float32"),
    "tensor(int32)": ("i32", "int32"),
    "tensor(int64)": ("i64", "int32"),
}
_OUTPUTS = ("tensor(float)",)
#: What the converter writes for ncnn.
_NETWORK, _WEIGHTS = "model.ncnn.param", "model.ncnn.bin"
#: What it writes beside: the sizes of all values; a program, which says where a batch is and which
#: nobody runs.
_SIZES, _PROGRAM = "model.pnnx.param", "model_ncnn.py"
#: The options of ncnn that allow half precision.
_HALF = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic")
_FP16 = "fp16"
#: Lines of the two files.
_OUTPUT = re.compile(r"^pnnx\.Output .*", re.MULTILINE)
_SHAPE = re.compile(r"=\(([\d,]+)\)\w+$")
_FED = re.compile(r'ex\.input\("(\w+)", .*batch_index=(\d+)')
_READ = re.compile(r"from_numpy\((\w+)\.numpy\(batch_index=(\d+)\)")
#: An operator that the converter left as it was, since ncnn has none for it.
_LEFT = re.compile(r"^ignore (\S+) \S+ param ", re.MULTILINE)
#: What the tool within the converter that runs parts of the file says of a failure.
_FAILED = "ort "
_COLOUR = re.compile("\x1b\\[[\\d;]*m")
#: The axis that says in ncnn that a value has no batch.
_NO_BATCH = 233
#: Axes that a value has at most, beside the batch.
_MOST_AXES = 4


class Ncnn(Engine):
    """A network that pnnx converted for the sizes of the case."""

    _ncnn: Any = None  # the package has no types
    _converter: Path | None = None
    _folder: Path | None = None
    _own: OwnFolder | None = None
    _threads = 0

    def load(self) -> str:
        """Import ``ncnn``, find its converter, and return the version."""
        import ncnn  # the measured thing itself, so its import is timed

        self._ncnn = ncnn
        # To import the package of the converter takes PyTorch; the program in it does without.
        found = find_spec("pnnx")
        if found is None or found.origin is None or find_spec("onnx") is None:
            raise ImportError("the converter pnnx, or the package onnx, is not installed")
        name = "pnnx.exe" if sys.platform == "win32" else "pnnx"
        self._converter = Path(found.origin).with_name(name)
        return str(ncnn.__version__)

    def compile(self) -> int | None:
        """Convert the file in a process of its own, and return the size of what came of it."""
        require_types(replace(self.task, outputs=()), "ncnn", _INPUTS)
        require_types(replace(self.task, inputs=()), "ncnn", _OUTPUTS)
        empty = next((item for item in self.task.inputs if 0 in (item.shape or ())), None)
        if empty is not None:
            raise EngineRefusal(
                f"the input {empty.name!r} has the shape {list(empty.shape or ())}, so it has no "
                "values, which ncnn can't run",
                hint="If the model leaves the size open, set it above 0 with --ort-dims. If not, "
                f"{without_engine(_ALIAS, 'leave')}",
            )
        place = self._place()
        if not (place / _NETWORK).is_file():
            self._convert(place)
        self._folder = place
        return sum((place / name).stat().st_size for name in (_NETWORK, _WEIGHTS))

    def open(self) -> Inference:
        """Load the network, and return what feeds it and reads its outputs."""
        assert self._folder is not None
        network = self._folder / _NETWORK
        net = self._ncnn.Net()
        net.opt.num_threads = self.task.threads
        if self.task.options.get(_FP16, "0") == "0":
            for name in _HALF:
                setattr(net.opt, name, False)
        self._threads = net.opt.num_threads
        kinds = operators_of(network.read_text(encoding="utf-8"))
        refuse_lacking(kind for kind in kinds if self._ncnn.layer_to_index(kind) < 0)
        if net.load_param(str(network)) or net.load_model(str(self._folder / _WEIGHTS)):
            raise EngineRefusal(
                "ncnn can't load the network that its converter pnnx made from the ONNX file",
                hint=without_engine(_ALIAS),
            )
        return self._inference(net)

    def in_force(self) -> dict[str, str]:
        """Return how many threads the network was told to use, as it reads that back."""
        return {"num_threads": str(self._threads)} if self._threads else {}

    def close(self) -> None:
        """Let go of what was converted."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _inference(self, net: Any) -> Inference:
        assert self._folder is not None
        shapes = shapes_of_outputs(
            (self._folder / _SIZES).read_text(encoding="utf-8"), self.task.outputs
        )
        batches = batches_of((self._folder / _PROGRAM).read_text(encoding="utf-8"))
        fed = set(net.input_names())
        feeding = [
            (item.name, blob, _INPUTS[item.type][1], batches.get(blob, _NO_BATCH))
            for blob, item in ((f"in{place}", item) for place, item in enumerate(self.task.inputs))
            if blob in fed
        ]
        reading = [
            (item.name, f"out{place}", shape, batches.get(f"out{place}", _NO_BATCH))
            for place, (item, shape) in enumerate(zip(self.task.outputs, shapes, strict=False))
        ]
        axes = {item.name: len(item.shape or ()) for item in self.task.inputs}
        refuse_axes({name: axes[name] - (batch != _NO_BATCH) for name, _, _, batch in feeding})
        mat, make_extractor = self._ncnn.Mat, net.create_extractor

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            extractor = make_extractor()
            for name, blob, kind, batch in feeding:
                values = feeds[name].astype(kind, order="C", copy=False)
                # Only a copy has the steps between channels that ncnn computes with.
                extractor.input(blob, mat(values, batch_index=batch).clone())
            outputs = []
            for name, blob, shape, batch in reading:
                status, value = extractor.extract(blob)
                if status:
                    raise EngineRefusal(
                        f"ncnn failed to compute the output {name!r}: its status is {status}",
                        kind="error",
                        hint=without_engine(_ALIAS),
                    )
                outputs.append(value.numpy(batch_index=batch).reshape(shape))
            return outputs

        return infer

    def _convert(self, place: Path) -> None:
        with OwnFolder("pnnx", place) as folder:
            file = folder / "model.onnx"
            joined = _run(
                [sys.executable, "-c", _JOIN, str(self.task.path.absolute()), str(file)], folder
            )
            if joined.returncode:
                last = (joined.stdout.strip() or " ").splitlines()[-1]
                raise EngineRefusal(
                    "the model can't be written as one file of up to 2 GB, which ncnn's converter "
                    f"pnnx needs. {says('Python', last)}",
                    hint=without_engine(_ALIAS),
                )
            arguments = converter_arguments(self.task)
            done = _run([str(self._converter), file.name, *arguments], folder)
            if done.returncode or not (folder / _NETWORK).is_file():
                raise EngineRefusal(pnnx_refusal(done.stdout, done.returncode))
            refuse_lacking(_LEFT.findall(done.stdout))
            # The one that is looked for comes last.
            for name in (_WEIGHTS, _SIZES, _PROGRAM, _NETWORK):
                (folder / name).replace(place / name)

    def _place(self) -> Path:
        if self.task.folder is not None:
            return self.task.folder
        self._own = OwnFolder("ncnn")
        return self._own.path


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def converter_arguments(task: EngineTask) -> list[str]:
    """Return what the converter is told beside the file: sizes of inputs, and the precision.

    Args:
        task: What is to run.
    """
    sizes = [
        f"[{','.join(map(str, item.shape or ()))}]{_INPUTS[item.type][0]}" for item in task.inputs
    ]
    return [f"inputshape={','.join(sizes)}", f"fp16={task.options.get(_FP16, '0')}"]


def operators_of(network: str) -> list[str]:
    """Return the kinds of the layers of a network, each once.

    Args:
        network: Its file: a number, two counts, and a line for each layer.
    """
    lines = [line.split() for line in network.splitlines()[2:]]
    return list(dict.fromkeys(words[0] for words in lines if words))


def refuse_lacking(operators: Iterable[str]) -> None:
    """Refuse a network with operators that ncnn lacks.

    Args:
        operators: Those; nothing is refused for none.

    Raises:
        EngineRefusal: with their names, as pnnx calls them.
    """
    lacking = list(dict.fromkeys(operators))
    if lacking:
        word = "operator" if len(lacking) == 1 else "operators"
        named = "it" if len(lacking) == 1 else "them"
        raise EngineRefusal(
            f"ncnn lacks the {word} {', '.join(lacking)}, as its converter pnnx calls {named}",
            hint=without_engine(_ALIAS),
        )


def refuse_axes(axes: Mapping[str, int]) -> None:
    """Refuse a value with more axes than ncnn has.

    Args:
        axes: Number of axes beside the batch, by input.

    Raises:
        EngineRefusal: with the first that has more.
    """
    for name, count in axes.items():
        if count > _MOST_AXES:
            raise EngineRefusal(
                f"the input {name!r} has {count} axes beside the batch, but ncnn takes at most "
                f"{_MOST_AXES}",
                hint=without_engine(_ALIAS),
            )


def shapes_of_outputs(sizes: str, outputs: Sequence[EngineTensor]) -> list[tuple[int, ...]]:
    """Return the shape of each output, in order.

    Args:
        sizes: The converter's own file, which has the sizes of all values.
        outputs: Those of the model.

    Raises:
        EngineRefusal: for an output that the file lacks, or whose sizes it lacks.
    """
    lines = _OUTPUT.findall(sizes)
    shapes = [match[1] if match else "" for match in map(_SHAPE.search, lines)]
    for place, output in enumerate(outputs):
        if not shapes[place : place + 1] or not shapes[place]:
            raise EngineRefusal(
                "ncnn needs the sizes of all outputs, but its converter pnnx found none for "
                f"{output.name!r}",
                hint="If the output is a scalar, export the model with the shape [1] for it. If "
                "its sizes are open, export the model with fixed sizes. Or "
                f"{without_engine(_ALIAS, 'leave')}",
            )
    return [tuple(map(int, shape.rstrip(",").split(","))) for shape in shapes]


def batches_of(program: str) -> dict[str, int]:
    """Return the axis of the batch of inputs and outputs that have one.

    Args:
        program: What the converter wrote to show how its network is called.
    """
    found = (*_FED.finditer(program), *_READ.finditer(program))
    return {match[1]: int(match[2]) for match in found}


def pnnx_refusal(log: str, status: int) -> str:
    """Return in one line why the converter wrote nothing.

    Args:
        log: What it printed.
        status: How its process ended; negative for a signal.
    """
    lines = [line.strip() for line in _COLOUR.sub("", log).splitlines() if line.strip()]
    if status < 0:
        failed = [line[:200] for line in lines if line.startswith(_FAILED)]
        said = f". {says('It', failed[-1])}" if failed else ""
        return f"ncnn's converter pnnx ended by signal {-status}{said}"
    return f"ncnn's converter pnnx failed. {says('It', lines[-1] if lines else '')}"
