"""Services that a run starts: how they are written, and what they are called."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.model_spec import PYTHON
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.launch.service_process import app_command
from pytest_ortbench.planning.axes import parse_int
from pytest_ortbench.planning.endpoints import ALIAS, parse_address
from pytest_ortbench.planning.request import PlanRequest

#: Stands for ``ortbench serve`` of the model that is measured.
REFERENCE = "reference"
#: The option of an endpoint that says which application of the user's answers there.
APP = "app"
PLACE = "--ort-serve"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
#: So many models are named where a service can have one.
_NAMED_MODELS = 3
#: How servers of Python name an application: by its module.
_OF_MODULE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")


def read_app(written: OptionText) -> str:
    """Read what is to be started: an absolute path and a name, or the reference.

    Raises:
        UsageError: for anything else, and where its packages are missing.
    """
    refuse_without("uvicorn", "serve", place=written.place)
    refuse_without("aiohttp", "endpoint", place=written.place)
    text = written.last.strip()
    if text == REFERENCE:
        return text
    file, _, name = text.rpartition(":")
    path = written.base / file
    if not file or not name.isidentifier() or path.suffix.lower() != PYTHON:
        raise UsageError(
            f"{text!r} does not name an application",
            place=written.place,
            hint="Write a Python file and the name of the application in it, e.g. "
            f"{PLACE}={_meant(text)}. To measure the server that ortbench has built in, write "
            f"{PLACE}={REFERENCE}",
        )
    if not path.stem.isidentifier():
        named = re.sub(r"\W", "_", path.stem)
        named = named if named.isidentifier() else f"app_{named}"
        raise UsageError(
            f"Python can't import {path.name!r}, since {path.stem!r} is not a valid module name",
            place=written.place,
            hint=f"Rename the file, e.g. to {named}{PYTHON}, and write "
            f"{PLACE}={Path(file).with_name(named)}{PYTHON}:{name}",
        )
    if not path.is_file():
        raise UsageError(
            f"the file {path} does not exist", place=written.place, hint="Correct the path"
        )
    return f"{path.resolve()}:{name}"


def _meant(text: str) -> str:
    """Return how an application is written, with the file and name that the text has."""
    if Path(text).suffix.lower() == PYTHON:
        return f"{text}:app"
    match = _OF_MODULE.fullmatch(text)
    return f"{match['module'].replace('.', '/')}{PYTHON}:{match['name']}" if match else "app.py:app"


def read_port(written: OptionText) -> int:
    """Read the port of a service."""
    return parse_int(written.last, place=written.place, most=65535, example="8011")


def read_name(written: OptionText) -> str:
    """Read what a service calls the model."""
    return required_name(written.last.strip(), place=written.place)


def refuse_beside_endpoint(*, value: str, place: str, endpoint: str) -> None:
    """Refuse a service that is started beside one that is there."""
    if value and endpoint:
        raise UsageError(
            "the option starts a service, but --ort-endpoint names a service that already runs",
            place=place,
            hint=f"To measure the service that runs, leave out {place}. To start one, leave out "
            "--ort-endpoint",
        )


def required_name(name: str, *, place: str) -> str:
    """Return a name that a model may have in a path.

    Args:
        name: As written.
        place: Where, for messages.

    Raises:
        UsageError: for any other.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be the name of a model in a URL",
            place=place,
            hint="Write at most 100 letters, digits, dots, dashes and underscores, beginning with "
            f"a letter or digit, e.g. {_as_name(name)}",
        )
    return name


def path_name(model: str) -> str:
    """Return what a model is called in a path by default: the last part of its specification."""
    plain = model.removesuffix(".onnx").removesuffix(".ort")
    return _as_name(re.split(r"[/\\:]", plain)[-1])


def _as_name(text: str) -> str:
    """Return a text without the characters that the name of a model can't have in a URL."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:100] or "model"


def with_service(request: PlanRequest) -> PlanRequest:
    """Return a request with the endpoint of the service that is started for it.

    Raises:
        UsageError: if there are several models, of which a service has one.
    """
    if not request.serve or request.endpoint:
        return request
    if len(request.models) != 1:
        more = ", …" if len(request.models) > _NAMED_MODELS else ""
        named = ", ".join(request.models[:_NAMED_MODELS])
        raise UsageError(
            "a service runs one model, but "
            + (f"{len(request.models)} are named: {named}{more}" if named else "none is named"),
            place=PLACE,
            hint=f"Name only one of them, e.g. {request.models[0]}. Measure each other model in a "
            "run of its own"
            if named
            else "Name the model that the service runs, e.g. --ort-models=model.onnx",
        )
    name = request.serve_name or path_name(request.models[0])
    url = f"http://127.0.0.1:{request.serve_port}/v2/models/{name}/infer"
    given = request.provider_options.get(ALIAS, {})
    options = {**request.provider_options, ALIAS: {**given, APP: request.serve}}
    return replace(request, endpoint=url, provider_options=options)


def service_command(request: PlanRequest, runtime: Runtime) -> list[str]:
    """Return what starts the service of a request in a runtime.

    Args:
        request: From :func:`with_service`.
        runtime: Where an application of the user's runs; the reference runs where pytest does.
    """
    if request.serve != REFERENCE:
        file, _, name = request.serve.rpartition(":")
        return app_command(Path(file), name, runtime, request.serve_port)
    address = parse_address(request.endpoint, place=PLACE)
    command = [sys.executable, "-m", "pytest_ortbench.cli", "serve", *request.models]
    command += [f"--port={request.serve_port}", f"--name={address.model}"]
    command += [f"--dims={name}:{sizes[0]}" for name, sizes in request.dims.items()]
    return command
