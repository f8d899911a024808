"""Where the requests of an endpoint go, as people write it, and the protocol that follows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from pytest_ortbench.core.errors import UsageError

#: Protocols, and how the address of each is written.
FORMS: dict[str, str] = {
    "v2": "http://HOST:PORT/v2/models/NAME/infer",
    "grpc": "grpc://HOST:PORT/NAME",
    "openai": "http://HOST:PORT/v1/completions",
    "custom": "custom:FILE.py:FUNCTION",
}
#: Ways of writing tensors that the Open Inference Protocol has.
ENCODINGS = ("binary", "json")
#: How a function of the user's writes them.
OWN_ENCODING = "own"
#: What requests to language models are written as: tokens in JSON, in OpenAI's protocol.
OPENAI = "openai"

_LONGEST = 2000
_SCHEMES = ("http", "https", "grpc")
_V2 = re.compile(r"(?P<root>.*)/v2/models/(?P<model>[^/]+)(?P<version>/versions/[^/]+)?/infer")
_GRPC_SCHEME = "grpc"
_GRPC = re.compile(r"/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?")
_COMPLETIONS = re.compile(r"(?P<root>.*)/v1/completions")
_CUSTOM = re.compile(r"custom:(?P<file>[^\0\r\n]+\.py):(?P<function>[^\W\d]\w*)", re.IGNORECASE)
_HINT = f"Write {' or '.join(FORMS.values())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddress:
    """The address of a model that a service runs.

    Attributes:
        protocol: A key of :data:`FORMS`.
        url: What requests are sent to; without name, password or query. Of ``custom`` what the
            user wrote.
        root: What stands before the protocol's own part of it: ``http://127.0.0.1:8000``; of
            ``grpc`` host and port.
        model: Name of the model at the service.
        version: ``/versions/2`` where one is asked for, of ``grpc`` the number; else empty.
        file: Of ``custom`` the Python file that sends requests.
        function: Of ``custom`` its function.
    """

    protocol: str
    url: str
    root: str = ""
    model: str = ""
    version: str = ""
    file: str = ""
    function: str = ""

    @property
    def model_url(self) -> str:
        """Where the service describes the model."""
        return f"{self.root}/v2/models/{self.model}{self.version}"

    @property
    def models_url(self) -> str:
        """Where a service of language models lists them."""
        return f"{self.root}/v1/models"

    @property
    def server_url(self) -> str:
        """Where the service describes itself."""
        return f"{self.root}/v2"


def parse_address(text: str, *, place: str) -> EndpointAddress:
    """Read the address of an endpoint.

    Args:
        text: As written.
        place: Where, for messages.

    Raises:
        UsageError: for what is no address of a protocol that is known, and for one with a password
            or a query, since it would stand in documents.
    """
    text = text.strip()
    own = _CUSTOM.fullmatch(text)
    if own is not None:
        return EndpointAddress(
            protocol="custom", url=text, file=own["file"], function=own["function"]
        )
    parts = _split(text, place)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            "the address holds a name, a password or a query, which a document would keep",
            place=place,
            hint="Write the address alone; a header goes into the environment variable "
            "ORTBENCH_ENDPOINT_AUTHORIZATION",
        )
    named = _GRPC.fullmatch(parts.path)
    if parts.scheme == _GRPC_SCHEME and named is not None and parts.port is not None:
        return EndpointAddress(
            protocol="grpc", url=text, root=parts.netloc, model=named["model"],
            version=named["version"] or "",
        )  # fmt: skip
    root = f"{parts.scheme}://{parts.netloc}"
    texts = _COMPLETIONS.fullmatch(parts.path)
    if texts is not None and parts.scheme != _GRPC_SCHEME:
        return EndpointAddress(protocol=OPENAI, url=text, root=root + texts["root"])
    match = _V2.fullmatch(parts.path)
    if match is None or parts.scheme == _GRPC_SCHEME:
        raise UsageError(f"{text!r} is the address of no model", place=place, hint=_HINT)
    return EndpointAddress(
        protocol="v2",
        url=text,
        root=root + match["root"],
        model=match["model"],
        version=match["version"] or "",
    )


def _split(text: str, place: str) -> SplitResult:
    """Take an address apart, or refuse what is none."""
    if len(text) > _LONGEST or not text.isascii() or re.search(r"[\s\x00-\x20\x7f\\]", text):
        raise UsageError(
            f"{text[:_LONGEST]!r} is not the address of an endpoint", place=place, hint=_HINT
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{text!r} is not an address: {error}", place=place, hint=_HINT) from None
    if parts.scheme not in _SCHEMES or not parts.hostname or port == 0:
        raise UsageError(f"{text!r} is not the address of an endpoint", place=place, hint=_HINT)
    return parts


def custom_files(url: str) -> tuple[str, ...]:
    """Return the path of the user's file that an address names; nothing for other addresses."""
    own = _CUSTOM.fullmatch(url)
    return () if own is None else (own["file"],)
