"""How a worker starts in an interpreter that has nothing of ours."""

from __future__ import annotations

import base64
import functools
import json
import marshal
import sys
import zlib
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.schema.question_table import questions

_ROOT = Path(__file__).parent.parent
_PACKAGE = "pytest_ortbench"
_IMPORTER = f"{_PACKAGE}.worker.importer"

#: First code of a worker, passed with ``-c``. Before anything else can print or read, the original
#: stdin and stdout become private descriptors, which no child process inherits; then stdout is
#: the same as stderr, which the host captures as the native log, and stdin is empty. ``-c`` puts
#: the current folder on the path, where an ``onnxruntime`` folder of the user's would win.
LOADER = """\
import os, sys
i, o = os.dup(0), os.dup(1)
os.dup2(2, 1)
n = os.open(os.devnull, os.O_RDONLY)
os.dup2(n, 0)
os.close(n)
sys.path[:1] == [''] and sys.path.pop(0)
import json
sys.stdout.reconfigure(line_buffering=True)
token = sys.argv[1]
channel = os.fdopen(i, 'rb')
line = channel.readline()
if line:
    sent = json.loads(line)
    lines = {name: channel.readline() for name in sent['modules']}
    space = {'__name__': 'importer'}
    exec(compile(sent['importer'], '<IMPORTER>', 'exec'), space)
    space['install'](lines, sent['python'])
    from pytest_ortbench.worker.main import serve
    serve(channel, os.fdopen(o, 'wb', 0), token)
""".replace("IMPORTER", _IMPORTER)


#: The same where a shell is on the way (``ssh`` joins its arguments, and the other machine's login
#: shell splits them again): the loader itself travels as hexadecimal digits, and what is left is a
#: line in double quotes that means the same to every shell.
_THROUGH_SHELL = '"import sys;exec(bytes.fromhex(sys.argv[2]))"'


def command(runtime: Runtime, token: str) -> list[str]:
    """Return the command that starts a worker in ``runtime``.

    ``current`` is the interpreter that runs pytest, with its environment: ``-I`` would hide what
    is installed for the user or through ``PYTHONPATH``, as in many vendors' containers.
    """
    start = list(runtime.command) or [sys.executable]
    if runtime.isolated:
        start.append("-I")
    if runtime.through_shell:
        return [*start, "-c", _THROUGH_SHELL, token, LOADER.encode("ascii").hex()]
    return [*start, "-c", LOADER, token]


#: What prepares conversions on the host, beside what makes them.
_ON_THE_HOST = (_ROOT / "convert" / "variants.py",)
#: What host and worker say to each other is in these modules, and in those of the questions.
_CONVERSATION = (
    "pytest_ortbench.schema.wire",
    "pytest_ortbench.schema.protocol",
    "pytest_ortbench.schema.question",
    "pytest_ortbench.schema.question_table",
)

#: What reads and writes the messages of a service.
_OF_THE_PROTOCOL = ("__init__", "fields", "json_body", "protocol", "tensor_values")

#: Modules and packages in the folder of a pass or an engine that travel to workers.
_PARTS_OF_WORKERS = ("__init__", "declaration", "facts", "questions", "worker", "export")


@functools.cache
def module_lines(*, compiled: bool) -> bytes:
    """Return the first lines for a worker: which modules it may import, then each, as JSON.

    A module has a line of its own, with its name, its source and its code, which may be empty, both
    compressed, in base64: a worker listens when all of it has arrived.
    Together they are megabytes; whoever frees so large a piece of memory tells glibc's
    allocator to keep smaller ones from then on, so that what a session frees, such as the bytes of
    a file of 3 MB, would stay in the measured peak (mallopt(3), M_MMAP_THRESHOLD: 128 KiB before).

    Args:
        compiled: Whether what the sources compile to comes with them. A worker takes 0.1 s to
            compile what it imports, and so does the host for everything, once.
    """
    sources = {name: path.read_text(encoding="utf-8") for name, path in _files().items()}
    packages = {name.rpartition(".")[0] for name in sources}
    python = [sys.implementation.cache_tag, MAGIC_NUMBER.hex()] if compiled else []
    first = {"modules": list(sources), "python": python, "importer": sources[_IMPORTER]}
    sent: list[object] = [first]
    for name, source in sources.items():
        code = _compiled(name, source, is_package=name in packages) if compiled else b""
        sent.append([name, _packed(source.encode("utf-8")), _packed(code)])
    return b"".join(json.dumps(line).encode("ascii") + b"\n" for line in sent)


def _files() -> dict[str, Path]:
    files = [_ROOT / room / "__init__.py" for room in ("", "schema", "yardstick")]
    asked = [name.partition(":")[0] for name in questions()]
    files += [_file(name) for name in dict.fromkeys((*_CONVERSATION, *asked))]
    for room in ("passes", "engines"):
        files += [path for path in (_ROOT / room).rglob("*.py") if _is_of_workers(path)]
    files += [_ROOT / "selfcheck" / name for name in ("__init__.py", "facts.py")]
    files += [_ROOT / "serving" / f"{name}.py" for name in _OF_THE_PROTOCOL]
    for room in ("core", "worker", "convert", "yardstick/worker", "selfcheck/worker"):
        files += [path for path in (_ROOT / room).rglob("*.py") if path not in _ON_THE_HOST]
    return {_dotted(path.relative_to(_ROOT)): path for path in files}


def _is_of_workers(path: Path) -> bool:
    """Whether a module of a pass or an engine travels: registry, facts, questions, answers."""
    inside = path.relative_to(_ROOT).with_suffix("").parts[2:]
    return not inside or inside[0] in _PARTS_OF_WORKERS


def _file(module: str) -> Path:
    return _ROOT.parent.joinpath(*module.split(".")).with_suffix(".py")


def _packed(content: bytes) -> str:
    """Compressed, in base64; empty for nothing. A higher level saves little and takes long."""
    return base64.b64encode(zlib.compress(content, 1)).decode("ascii") if content else ""


def _compiled(name: str, source: str, *, is_package: bool) -> bytes:
    """The code of a module, marshalled, under the same name as the worker gives it."""
    place = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
    code = compile(source, place, "exec", dont_inherit=True)
    return marshal.dumps(code)


def _dotted(path: Path) -> str:
    parts = [part for part in path.with_suffix("").parts if part != "__init__"]
    return ".".join([_PACKAGE, *parts])
